// Rotation of the coordinator's key. Its clients trust only the key that they have pinned, so a new key takes
// two steps: the next key is announced, and clients store it; later it replaces the present key. Files of the
// data directory: node.key, and next.key while a key is announced. The enrolment book names the key in force,
// so a rotation that a crash interrupts is completed by whoever works with the keys next. Any thread; one
// process at a time.
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

// The announced key; nothing if none is announced. Never creates one.
Result<std::optional<SecretKey>> announced_key(const std::filesystem::path& data_directory);

// Completes a rotation that was interrupted, and returns the key in force. Creates one in a new directory.
// kRefused: the enrolment book is bound to a key that is neither node.key nor next.key.
Result<SecretKey> key_in_force(const std::filesystem::path& data_directory, Enrolment& enrolment);

// Creates the next key and returns it. Recorded in the audit log. From then on the coordinator tells its
// clients. kRefused: a key is announced already, which somebody else may know by now.
Result<PublicKey> announce_next_key(const std::filesystem::path& data_directory, Enrolment& enrolment,
                                    const Actor& actor);
// Removes the announced key, also one that cannot be read: the clients forget it. kNotFound: none is
// announced.
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
// Opens the coordinator's key before it serves clients, as key_in_force(), and binds a new enrolment book to
// it.
Result<TakenKey> take_up_key(const std::filesystem::path& data_directory);

}  // namespace fedge::server
