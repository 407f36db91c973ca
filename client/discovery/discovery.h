// Finds a coordinator in the directory: by its key, which its clients have pinned, or by a run's name for a
// device that is not a client yet. Runs on the io_context's thread. Calls `done` once within the given
// patience, unless the returned search is destroyed first. Destroy the search before the directory.
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
  std::vector<protocol::Address> addresses;  // in the order to try
};

struct SearchTerms {
  boost::asio::io_context& io;
  dht::Directory& directory;
  Duration patience{};  // how long to ask again while there is no answer or no record
};

using CoordinatorFound = std::function<void(const Result<FoundCoordinator>&)>;

// kNotFound: no announcement; the text counts ignored records. kUnavailable: no directory node answered.
[[nodiscard]] dht::Subscription find_coordinator(const SearchTerms& terms, const PublicKey& key,
                                                 CoordinatorFound done);

// Finds the coordinator that announces the run of this name. Any node may announce any name: if you know
// the coordinator's key, use find_coordinator. kNotFound and kUnavailable as above; kRefused: several
// coordinators announce the name, and the error lists them.
[[nodiscard]] dht::Subscription find_run(const SearchTerms& terms, const std::string& run_name,
                                         CoordinatorFound done);

}  // namespace fedge::client
