#include "server/contact/contact_keeper.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "server/contact/key_rotation.h"
#include "server/data_directory.h"
#include "server/enrolment.h"

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

void ContactKeeper::open(const PublicKey& key) {
  key_ = key;
  // The files are read even if they seem unchanged: `seen_` is that of no files.
  look();
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
  FEDGE_TRY_VOID(take_key());
  FEDGE_TRY(next, announced_key(directory_));
  const auto next_key = next ? std::optional(next->public_key()) : std::nullopt;
  FEDGE_TRY(still, files());
  if (still != there) return read();  // changed meanwhile: the key that was read may be in force by now
  seen_ = there;
  callbacks_.on_told(next_key);
  if (std::exchange(contact_.next_key, next_key) == next_key) return {};
  callbacks_.report(next_key ? Event{Severity::kInfo, "key.announced", {}}.with("key", to_hex(*next_key))
                             : Event{Severity::kInfo, "key.no_longer_announced", {}});
  callbacks_.on_changed();
  return {};
}

// Takes over the key that has replaced the present one, if one has. The enrolment book says which key is in
// force: a key that somebody put there by hand is another one, and clients would not accept it.
Result<void> ContactKeeper::take_key() {
  FEDGE_TRY(key, open_coordinator_key(directory_));
  if (key.public_key() == key_) return {};
  FEDGE_TRY(in_force, Enrolment(directory_).coordinator());
  if (key.public_key() != in_force)
    return Error{ErrorCode::kRefused,
                 (directory_ / kKeyFile).string() +
                     " was replaced by a key that was not announced; the coordinator goes on with its key"};
  FEDGE_TRY_VOID(callbacks_.on_rotated(std::move(key)));
  key_ = in_force;
  callbacks_.report(Event{Severity::kInfo, "key.rotated", {}}.with("key", to_hex(key_)));
  return {};
}

}  // namespace fedge::server
