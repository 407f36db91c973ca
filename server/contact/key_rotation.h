// Rotation of the coordinator's key. Its clients trust only the key that they have pinned, so a new key takes
// two steps: the next key is announced, and clients store it; later it replaces the present key. Files of the
// data directory: node.key, and next.key while a key is announced. The enrolment book names the key in force,
// so a rotation that a crash interrupts is completed at the next start. Any thread; one process at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/result.h"
#include "server/access/calendar.h"
#include "server/audit_log.h"

namespace fedge::server {

class Enrolment;

inline constexpr const char* kKeyFile = "node.key";
inline constexpr const char* kNextKeyFile = "next.key";

// The announced key; nothing if none is announced.
Result<std::optional<SecretKey>> announced_key(const std::filesystem::path& data_directory);

// Creates the next key, unless one is announced already, and returns it. Recorded in the audit log. From then
// on the coordinator tells its clients.
Result<PublicKey> announce_next_key(const std::filesystem::path& data_directory, const Actor& actor);
// Removes the announced key: the clients forget it. kNotFound: none is announced; kRefused: it is in force
// already, because a rotation was interrupted.
Result<void> withdraw_next_key(const std::filesystem::path& data_directory, Enrolment& enrolment,
                               const Actor& actor);

// Replaces the coordinator's key by the announced one, and returns that. The former key is destroyed.
// Recorded in the audit log, with the details. kNotFound: none is announced.
Result<PublicKey> rotate_key(const std::filesystem::path& data_directory, Enrolment& enrolment,
                             const AuditDetails& details);

struct TakenKey {
  SecretKey key;
  std::vector<AuditEntry> made_good;  // as Enrolment::take_up() returns them
};
// Opens the coordinator's key before it serves clients, completes a rotation that was interrupted, and binds
// the enrolment book to the key. Errors as those of open_coordinator_key() and Enrolment::take_up().
Result<TakenKey> take_up_key(const std::filesystem::path& data_directory);

}  // namespace fedge::server
