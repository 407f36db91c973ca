#include "server/contact/key_rotation.h"

#include <cerrno>
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

std::string key_subject(const PublicKey& key) { return "key " + to_hex(key); }

// The announced key becomes the coordinator's key; the former one is gone.
Result<void> put_in_force(const std::filesystem::path& data_directory) {
  std::error_code error;
  std::filesystem::rename(data_directory / kNextKeyFile, data_directory / kKeyFile, error);
  if (error) return system_error("cannot rename", data_directory / kNextKeyFile, error.value());
  return sync_directory(data_directory);
}

}  // namespace

Result<std::optional<SecretKey>> announced_key(const std::filesystem::path& data_directory) {
  const auto file = data_directory / kNextKeyFile;
  const auto there = identity_of(file);
  if (!there && there.error().code == ErrorCode::kNotFound) return std::optional<SecretKey>();
  if (!there) return there.error();
  FEDGE_TRY(key, load_or_create_key(file));
  return std::optional(std::move(key));
}

Result<PublicKey> announce_next_key(const std::filesystem::path& data_directory, const Actor& actor) {
  FEDGE_TRY(announced, announced_key(data_directory));
  if (announced) return announced->public_key();
  const SecretKey key = SecretKey::generate();
  const AuditLog log(data_directory);
  FEDGE_TRY(entry, log.record(event_by(actor, "key.announced", key_subject(key.public_key()))));
  const auto stored = store_key(key, data_directory / kNextKeyFile);
  if (stored) return key.public_key();
  (void)log.append(change_failed(actor, entry, "key.announced", stored.error().message));
  return stored.error();
}

Result<void> withdraw_next_key(const std::filesystem::path& data_directory, Enrolment& enrolment,
                               const Actor& actor) {
  FEDGE_TRY(announced, announced_key(data_directory));
  if (!announced) return none_announced();
  FEDGE_TRY(in_force, enrolment.coordinator());
  if (in_force == announced->public_key())
    return Error{ErrorCode::kRefused,
                 "the announced key is in force already, because a rotation was interrupted; restart the "
                 "coordinator, which completes it"};
  const AuditLog log(data_directory);
  FEDGE_TRY(entry, log.record(event_by(actor, "key.withdrawn", key_subject(announced->public_key()))));
  std::error_code error;
  std::filesystem::remove(data_directory / kNextKeyFile, error);
  if (!error) return sync_directory(data_directory);
  const Error failed = system_error("cannot remove", data_directory / kNextKeyFile, error.value());
  (void)log.append(change_failed(actor, entry, "key.withdrawn", failed.message));
  return failed;
}

Result<PublicKey> rotate_key(const std::filesystem::path& data_directory, Enrolment& enrolment,
                             const AuditDetails& details) {
  FEDGE_TRY(announced, announced_key(data_directory));
  if (!announced) return none_announced();
  FEDGE_TRY(present, load_or_create_key(data_directory / kKeyFile));
  // From here on the next key is in force: after a crash, take_up_key() does the rest.
  FEDGE_TRY_VOID(enrolment.change_coordinator(present.public_key(), announced->public_key(), details));
  FEDGE_TRY_VOID(put_in_force(data_directory));
  return announced->public_key();
}

Result<TakenKey> take_up_key(const std::filesystem::path& data_directory) {
  FEDGE_TRY(key, open_coordinator_key(data_directory));
  FEDGE_TRY(next, announced_key(data_directory));
  Enrolment enrolment(data_directory);
  const auto announced = next ? std::optional(next->public_key()) : std::nullopt;
  FEDGE_TRY(made_good, enrolment.take_up(key.public_key(), announced));
  FEDGE_TRY(in_force, enrolment.coordinator());
  if (in_force == key.public_key()) return TakenKey{std::move(key), std::move(made_good)};
  FEDGE_TRY_VOID(put_in_force(data_directory));
  return TakenKey{std::move(*next), std::move(made_good)};
}

}  // namespace fedge::server
