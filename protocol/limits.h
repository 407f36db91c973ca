// Bounds on what a peer may send, checked before anything is allocated.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace fedge::protocol {

inline constexpr std::size_t kFrameHeaderSize = 16;
// Before the peer is authorised only a Hello fits; afterwards the largest manifest and coverage do.
inline constexpr std::size_t kMaxHeaderUnauthorised = 4 << 10;
inline constexpr std::size_t kMaxHeader = 2 << 20;
inline constexpr std::size_t kMinChunkSize = 4 << 10;
inline constexpr std::size_t kDefaultChunkSize = 256 << 10;
inline constexpr std::size_t kMaxChunkSize = 4 << 20;
inline constexpr std::size_t kMaxChunks = 30'000;
// What the largest payload could hold as float32, and this machine address: no coverage reaches beyond.
inline constexpr std::size_t kMaxParameters =
    std::min<std::uint64_t>(std::uint64_t{kMaxChunks} * kMaxChunkSize, SIZE_MAX) / sizeof(float);
inline constexpr std::size_t kMaxCoverageRanges = 65'536;
inline constexpr std::size_t kMaxCoverageBytes = 512 << 10;
// Levels of QSGD on each side of 0.
inline constexpr std::uint32_t kMaxQsgdLevels = 127;
// What a zstd frame of a payload may refer back to, and so what its decoder must keep: 128 KiB.
inline constexpr int kZstdWindowLog = 17;
// Bytes before zstd to bytes after it. zstd itself cannot do better (a block of 128 KiB takes four
// bytes), so an update of zeros passes; the bytes before zstd are bounded by the coverage.
inline constexpr std::uint64_t kMaxZstdRatio = 32'768;
inline constexpr std::size_t kMaxTaskText = 64 << 10;
inline constexpr std::size_t kMaxText = 1 << 10;        // names, reasons, messages
inline constexpr std::size_t kMaxSoftwareText = 256;    // of Hello and Welcome: both fit before authorisation
inline constexpr std::size_t kMaxRunsInProgress = 256;  // that a Welcome lists
inline constexpr std::size_t kMaxLiveTracks = 16'384;   // that a TrainRequest lists
inline constexpr std::size_t kMaxFeatures = 16;
inline constexpr std::size_t kMaxFeatureText = 64;
inline constexpr std::size_t kMaxAggregated = 4'096;          // updates that one AggregateUpdates names
inline constexpr std::size_t kMaxSwarmMembers = 1'024;        // that one message names
inline constexpr std::size_t kMaxWarmupOrders = 64;           // of a kind, in one slot of a warm-up
inline constexpr std::uint64_t kMaxWarmupChunks = 4'000'000;  // of all updates in a warm-up
// A chunk of a run with a warm-up, which passes a third client as one message; sealed, and with its name.
inline constexpr std::size_t kMaxWarmupChunkSize = 256 << 10;
inline constexpr std::size_t kMaxSealedChunk = kMaxWarmupChunkSize + 1024;
inline constexpr std::size_t kMaxSecureMembers = 65'536;   // whose updates one secure sum has
inline constexpr std::size_t kMaxSecurePeers = 1'024;      // that one of them masks with
inline constexpr std::size_t kMaxSecureCells = 8'190;      // stretches of the model that are summed
inline constexpr std::size_t kMaxSecureCoverages = 4'096;  // different parts of the model that members train
inline constexpr std::size_t kMaxSecureScalars = 8'192;    // that a masked update has
inline constexpr std::size_t kMaxAddressText = 261;        // a DNS name of 255 bytes, a colon, a port
inline constexpr std::size_t kMaxRecordBytes = 4 << 10;    // a directory record's value
inline constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 40;
inline constexpr std::chrono::hours kMaxTimeLeft{366 * 24};
// Chunk bytes asked for and not yet received on one link: the credit a receiver grants.
inline constexpr std::size_t kFetchWindow = 2 << 20;
inline constexpr std::size_t kMaxOutstandingChunks = 512;
// Control bytes waiting to be written on one link; a peer that reads nothing is cut off there.
inline constexpr std::size_t kMaxQueuedControl = 4 << 20;
// Control frames from one peer within one tick (a twelfth of the idle timeout); a flood is cut off.
inline constexpr std::size_t kMaxControlFramesPerTick = 10'000;
inline constexpr std::size_t kMaxControlBytesPerTick = 64 << 20;
// After the grace, a frame must be coming in at this rate: one who trickles holds a buffer, and is never
// silent for long.
inline constexpr std::size_t kMinBytesPerSecond = 4 << 10;
inline constexpr std::chrono::seconds kSlowGrace{30};
// How long a Goodbye may ask a peer to stay away: one that lies cannot silence a client for ever.
inline constexpr std::chrono::minutes kMaxRetryAfter{10};
inline constexpr std::chrono::seconds kHandshakeTimeout{10};
// How long a connection that was not let in still counts as one of its address's; up to twice as long.
inline constexpr std::chrono::seconds kRefusedPause{1};
inline constexpr std::chrono::seconds kPingInterval{20};
inline constexpr std::chrono::seconds kIdleTimeout{60};
// How long a closing link waits for its last bytes to leave and for the peer to close as well.
inline constexpr std::chrono::seconds kCloseTimeout{5};

}  // namespace fedge::protocol
