#include "server/contact/contact_keeper.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "server/contact/key_rotation.h"
#include "server/data_directory.h"

namespace fedge::server {

ContactKeeper::ContactKeeper(std::filesystem::path data_directory,
                             const std::vector<protocol::Address>& addresses, Callbacks callbacks)
    : directory_(std::move(data_directory)), callbacks_(std::move(callbacks)) {
  for (const protocol::Address& address : addresses)
    contact_.addresses.push_back(protocol::to_string(address));
}

Result<ContactKeeper::Files> ContactKeeper::files() const {
  Files files;
  const auto look_at = [&](const char* name, std::optional<Stamp>& stamp) -> Result<void> {
    struct stat file {};
    const auto path = directory_ / name;
    if (::stat(path.c_str(), &file) == 0) {
      stamp = {{file.st_dev, file.st_ino}, file.st_ctim.tv_sec * 1'000'000'000 + file.st_ctim.tv_nsec};
      return {};
    }
    return errno == ENOENT ? Result<void>() : system_error("cannot look at", path, errno);
  };
  FEDGE_TRY_VOID(look_at(kKeyFile, files.key));
  FEDGE_TRY_VOID(look_at(kNextKeyFile, files.next));
  return files;
}

Result<void> ContactKeeper::open(const PublicKey& key) {
  key_ = key;
  FEDGE_TRY(there, files());
  seen_ = there;
  FEDGE_TRY(next, announced_key(directory_));
  if (next) contact_.next_key = next->public_key();
  return {};
}

void ContactKeeper::look() {
  const auto read_again = read();
  const std::string trouble = read_again ? "" : read_again.error().message;
  if (std::exchange(trouble_, trouble) == trouble || trouble.empty()) return;
  callbacks_.report(Event{Severity::kError, "key.unreadable", {}}.with("reason", trouble));
}

Result<void> ContactKeeper::read() {
  FEDGE_TRY(there, files());
  if (there == seen_) return {};
  FEDGE_TRY(key, open_coordinator_key(directory_));
  FEDGE_TRY(next, announced_key(directory_));
  const auto next_key = next ? std::optional(next->public_key()) : std::nullopt;
  if (key.public_key() != key_) {
    // Another key than the announced one was put there by hand: its clients would not accept it.
    if (key.public_key() != contact_.next_key)
      return Error{ErrorCode::kRefused,
                   (directory_ / kKeyFile).string() +
                       " was replaced by a key that was not announced; the coordinator goes on with its key"};
    key_ = key.public_key();
    callbacks_.report(Event{Severity::kInfo, "key.rotated", {}}.with("key", to_hex(key_)));
    FEDGE_TRY_VOID(callbacks_.on_rotated(std::move(key)));
  }
  seen_ = there;
  if (std::exchange(contact_.next_key, next_key) == next_key) return {};
  callbacks_.report(next_key ? Event{Severity::kInfo, "key.announced", {}}.with("key", to_hex(*next_key))
                             : Event{Severity::kInfo, "key.no_longer_announced", {}});
  callbacks_.on_changed(contact_);
  return {};
}

}  // namespace fedge::server
