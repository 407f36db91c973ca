// ContactKeeper: what a running coordinator tells its clients about how to reach it. It looks for changes of
// the key files in the data directory, which operators make with `fedge key`. On the io_context's thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/event.h"
#include "core/platform/files.h"
#include "protocol/messages.h"
#include "protocol/session/endpoint.h"

namespace fedge::server {

class ContactKeeper {
 public:
  struct Callbacks {
    // The contact has changed: every client is to get it.
    std::function<void()> on_changed;
    // The coordinator's key was replaced by this one.
    std::function<Result<void>(SecretKey)> on_rotated;
    std::function<void(const Event&)> report;
    // The next key that clients are told from now on, if any.
    std::function<void(const std::optional<PublicKey>&)> on_told;
  };
  ContactKeeper(std::filesystem::path data_directory, const std::vector<protocol::Address>& addresses,
                Callbacks callbacks);

  // Before the coordinator serves clients with this key; takes the files as they are.
  void open(const PublicKey& key);
  // Looks at the files. An error is reported once, and the last contact stays in force.
  void look();
  const protocol::Contact& contact() const { return contact_; }
  // The key that the coordinator proves to new connections.
  const PublicKey& key() const { return key_; }

 private:
  // Tells a file from another that was there before; an inode alone may be used again at once.
  struct Stamp {
    FileIdentity identity;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Files {
    std::optional<Stamp> key;
    std::optional<Stamp> next;
    bool operator==(const Files&) const = default;
  };
  Result<Files> files() const;
  Result<void> read();
  Result<void> take_key();

  std::filesystem::path directory_;
  Callbacks callbacks_;
  protocol::Contact contact_;
  PublicKey key_{};
  Files seen_;
  std::string trouble_;  // last reported
};

}  // namespace fedge::server
