#include "server/contact/key_rotation.h"

#include <string>
#include <utility>

#include "core/platform/files.h"
#include "server/data_directory.h"
#include "server/enrolment.h"

namespace fedge::server {
namespace {

Error none_announced() {
  return {ErrorCode::kNotFound, "no next key is announced; announce one with: fedge key announce"};
}

std::string key_subject(const std::string& key) { return "key " + key; }

// The announced key becomes the coordinator's key; the former one is gone.
Result<void> put_in_force(const std::filesystem::path& data_directory) {
  std::error_code error;
  std::filesystem::rename(data_directory / kNextKeyFile, data_directory / kKeyFile, error);
  if (error) return system_error("cannot rename", data_directory / kNextKeyFile, error.value());
  return sync_directory(data_directory);
}

Result<void> remove_next_key(const std::filesystem::path& data_directory) {
  std::error_code error;
  std::filesystem::remove(data_directory / kNextKeyFile, error);
  if (error) return system_error("cannot remove", data_directory / kNextKeyFile, error.value());
  return sync_directory(data_directory);
}

// The key in force, of which the book names the public part.
Result<SecretKey> settled(const std::filesystem::path& data_directory, SecretKey key,
                          Result<std::optional<SecretKey>> next, const PublicKey& in_force) {
  const bool announced = next && *next;
  if (in_force == key.public_key()) {
    // As after a backup that copied both files while one became the other.
    if (announced && (*next)->public_key() == in_force) FEDGE_TRY_VOID(remove_next_key(data_directory));
    return key;
  }
  if (!next) return next.error();
  if (!announced || (*next)->public_key() != in_force)
    return Error{ErrorCode::kRefused, "the enrolment book in " + data_directory.string() +
                                          " belongs to the coordinator with key " + to_hex(in_force) +
                                          ", but the key in node.key is " + to_hex(key.public_key()) +
                                          "; restore the data directory from a backup"};
  FEDGE_TRY_VOID(put_in_force(data_directory));
  return std::move(**next);
}

}  // namespace

Result<std::optional<SecretKey>> announced_key(const std::filesystem::path& data_directory) {
  auto key = load_key(data_directory / kNextKeyFile);
  if (key) return key;
  return Error{key.error().code, "the announced key cannot be used: " + key.error().message +
                                     "; or remove it with: fedge key withdraw"};
}

Result<SecretKey> key_in_force(const std::filesystem::path& data_directory, Enrolment& enrolment) {
  FEDGE_TRY(key, open_coordinator_key(data_directory));
  auto next = announced_key(data_directory);
  FEDGE_TRY_VOID(enrolment.catch_up());
  const auto in_force = enrolment.coordinator();
  if (!in_force && in_force.error().code == ErrorCode::kNotFound)
    return key;  // no coordinator was started yet
  if (!in_force) return in_force.error();
  return settled(data_directory, std::move(key), std::move(next), *in_force);
}

Result<PublicKey> announce_next_key(const std::filesystem::path& data_directory, Enrolment& enrolment,
                                    const Actor& actor) {
  FEDGE_TRY(present, key_in_force(data_directory, enrolment));
  FEDGE_TRY(announced, announced_key(data_directory));
  if (announced)
    return Error{ErrorCode::kRefused, "a next key is announced already: " + to_hex(announced->public_key()) +
                                          "; if somebody else may have it, remove it first with: fedge key "
                                          "withdraw"};
  const SecretKey key = SecretKey::generate();
  const AuditLog log(data_directory);
  FEDGE_TRY(entry, log.record(event_by(actor, "key.announced", key_subject(to_hex(key.public_key())))));
  const auto stored = store_key(key, data_directory / kNextKeyFile);
  if (stored) return key.public_key();
  (void)log.append(change_failed(actor, entry, "key.announced", stored.error().message));
  return stored.error();
}

Result<void> withdraw_next_key(const std::filesystem::path& data_directory, Enrolment& enrolment,
                               const Actor& actor) {
  // First: an interrupted rotation has put the announced key in force.
  FEDGE_TRY(present, key_in_force(data_directory, enrolment));
  if (!identity_of(data_directory / kNextKeyFile)) return none_announced();
  const auto announced = announced_key(data_directory);
  const std::string name = announced && *announced ? to_hex((*announced)->public_key()) : "unreadable";
  const AuditLog log(data_directory);
  FEDGE_TRY(entry, log.record(event_by(actor, "key.withdrawn", key_subject(name))));
  const auto removed = remove_next_key(data_directory);
  if (!removed) (void)log.append(change_failed(actor, entry, "key.withdrawn", removed.error().message));
  return removed;
}

Result<PublicKey> rotate_key(const std::filesystem::path& data_directory, Enrolment& enrolment,
                             const AuditDetails& details) {
  FEDGE_TRY(present, key_in_force(data_directory, enrolment));
  FEDGE_TRY(announced, announced_key(data_directory));
  if (!announced) return none_announced();
  // From here on the next key is in force: after a crash, key_in_force() does the rest.
  FEDGE_TRY_VOID(enrolment.change_coordinator(present.public_key(), announced->public_key(), details));
  FEDGE_TRY_VOID(put_in_force(data_directory));
  return announced->public_key();
}

Result<TakenKey> take_up_key(const std::filesystem::path& data_directory) {
  FEDGE_TRY(key, open_coordinator_key(data_directory));
  auto next = announced_key(data_directory);
  Enrolment enrolment(data_directory);
  const auto announced = next && *next ? std::optional((*next)->public_key()) : std::nullopt;
  FEDGE_TRY(made_good, enrolment.take_up(key.public_key(), announced));
  FEDGE_TRY(in_force, enrolment.coordinator());
  FEDGE_TRY(taken, settled(data_directory, std::move(key), std::move(next), in_force));
  return TakenKey{std::move(taken), std::move(made_good)};
}

}  // namespace fedge::server
