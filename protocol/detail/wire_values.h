// Converts hashes, manifests, coverages and error codes to and from protobuf, and parses with bounds.
// Private to the codecs: only .cc files of protocol/ include it, because it needs the generated classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/coverage.h"
#include "core/crypto/ed25519.h"
#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "proto/fedge.pb.h"
#include "protocol/chunks/manifest.h"
#include "protocol/frame.h"
#include "protocol/wire_lengths.h"

namespace fedge::protocol {

v1::ErrorCode to_wire(ErrorCode code);
ErrorCode from_wire(v1::ErrorCode code);  // kInvalid for a code of a later version

// Milliseconds, from 0 to kMaxRetryAfter.
std::uint32_t to_wire_wait(Duration time);

std::string to_wire(const Digest& digest);
Result<Digest> digest_from_wire(const std::string& bytes);

std::string to_wire(const PublicKey& key);
Result<PublicKey> key_from_wire(const std::string& bytes);

std::string to_wire(const Coverage& coverage);
Result<Coverage> coverage_from_wire(const std::string& bytes);  // not empty

v1::Manifest to_wire(const Manifest& manifest);
Result<Manifest> from_wire(const v1::Manifest& wire);  // valid as validate() says

// A message about this task, with run, round and track set.
template <class Wire>
Wire begun(RunId run, TaskId task) {
  Wire wire;
  wire.set_run(run.value());
  wire.set_round(task.round.value());
  wire.set_track(task.track.value());
  return wire;
}

// Checks lengths and counts before protobuf allocates memory for them. Never prints: protobuf would log a
// peer's invalid UTF-8 to standard error.
Result<void> parse_wire(google::protobuf::MessageLite& wire, std::span<const std::byte> bytes,
                        std::span<const FieldCount> counts = {});
std::string serialise(const google::protobuf::MessageLite& wire);
// Frame header and header, without a payload.
std::string frame_around(MessageType type, const std::string& header);

}  // namespace fedge::protocol
