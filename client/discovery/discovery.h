// Where a coordinator is, asked of the directory: by its key, which its clients have pinned; or by a run's
// name, for who is no client yet. All on the io_context's thread; `done` is called once, within the patience
// given, unless the search that is returned is destroyed before; it must be before the directory is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/result.h"
#include "core/time.h"
#include "dht/directory.h"
#include "protocol/session/endpoint.h"

namespace boost::asio {
class io_context;
}

namespace fedge::client {

struct FoundCoordinator {
  PublicKey key;
  std::vector<protocol::Address> addresses;  // to be tried in this order
};

struct SearchTerms {
  boost::asio::io_context& io;
  dht::Directory& directory;
  Duration patience{};  // how long to ask again while nobody answers, or nothing is there
};

using CoordinatorFound = std::function<void(const Result<FoundCoordinator>&)>;

// kNotFound: it is not announced, and what was ignored meanwhile; kUnavailable: nobody could be asked.
[[nodiscard]] dht::Subscription find_coordinator(const SearchTerms& terms, const PublicKey& key,
                                                 CoordinatorFound done);

// The coordinator that announces the run of this name. Anybody may announce any name: who knows the
// coordinator's key asks for that. kNotFound, kUnavailable as above; kRefused: several announce it, which are
// named.
[[nodiscard]] dht::Subscription find_run(const SearchTerms& terms, const std::string& run_name,
                                         CoordinatorFound done);

}  // namespace fedge::client
