#include <algorithm>
#include <span>
#include <string_view>

#include "dht/record.h"
#include "protocol/codecs/little_endian.h"

namespace fedge::dht {
namespace {

// A key is the SHA-256 of its purpose, a zero byte, and its subject. The subject's fields have fixed
// lengths, and a string is the last one, so that different subjects never share an encoding.
class KeyText {
 public:
  explicit KeyText(std::string_view purpose) {
    add(purpose);
    bytes_.push_back(std::byte{0});
  }
  KeyText& add(std::string_view text) {
    const auto raw = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    return *this;
  }
  KeyText& add(std::span<const std::uint8_t> raw) {
    const auto more = std::as_bytes(raw);
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  template <class Number>
  KeyText& add_number(Number number) {
    protocol::append(bytes_, number);
    return *this;
  }
  Key key() const { return sha256(std::span<const std::byte>(bytes_)); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

Key coordinator_key(const PublicKey& coordinator) {
  return KeyText("fedge coordinator").add(coordinator.bytes).key();
}
Key node_key(const PublicKey& node, RunId run) {
  return KeyText("fedge node").add(node.bytes).add_number(run.value()).key();
}
Key model_key(const PublicKey& coordinator, RunId run, TrackId track) {
  return KeyText("fedge model")
      .add(coordinator.bytes)
      .add_number(run.value())
      .add_number(track.value())
      .key();
}
Key run_key(const std::string& run_name) { return KeyText("fedge run").add(run_name).key(); }
Key peers_key(const protocol::ObjectId& object) { return KeyText("fedge peers").add(object).key(); }

Key key_of(const Content& content, const PublicKey& signer) {
  if (const auto* announcement = std::get_if<Announcement>(&content))
    return announcement->run_name.empty() ? coordinator_key(signer) : run_key(announcement->run_name);
  if (const auto* node = std::get_if<NodeStatus>(&content)) return node_key(signer, node->run);
  if (const auto* model = std::get_if<ModelPointer>(&content))
    return model_key(signer, model->run, model->track);
  return peers_key(std::get<PeerList>(content).object);
}

}  // namespace fedge::dht
