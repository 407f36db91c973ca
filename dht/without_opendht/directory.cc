// Replaces dht/opendht/ in a build without OpenDHT.
#include "dht/network_directory.h"

namespace fedge::dht {

Result<std::unique_ptr<NetworkDirectory>> open_network_directory(const NetworkOptions&) {
  return Error{ErrorCode::kUnsupported,
               "this program was built without OpenDHT (FEDGE_WITH_OPENDHT=OFF) and cannot take part in the "
               "distributed directory"};
}

}  // namespace fedge::dht
