// Bounds on what a peer may send, checked before anything is allocated.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace fedge::protocol {

inline constexpr std::size_t kFrameHeaderSize = 16;
// A Hello must fit before authorisation; the largest manifest and coverage must fit afterwards.
inline constexpr std::size_t kMaxHeaderUnauthorised = 4 << 10;
inline constexpr std::size_t kMaxHeader = 2 << 20;
inline constexpr std::size_t kMinChunkSize = 4 << 10;
inline constexpr std::size_t kDefaultChunkSize = 256 << 10;
inline constexpr std::size_t kMaxChunkSize = 4 << 20;
inline constexpr std::size_t kMaxChunks = 30'000;
// The float32 values of the largest payload, as far as this machine can address them; bounds every
// coverage.
inline constexpr std::size_t kMaxParameters =
    std::min<std::uint64_t>(std::uint64_t{kMaxChunks} * kMaxChunkSize, SIZE_MAX) / sizeof(float);
inline constexpr std::size_t kMaxCoverageRanges = 65'536;
inline constexpr std::size_t kMaxCoverageBytes = 512 << 10;
// QSGD levels on each side of 0.
inline constexpr std::uint32_t kMaxQsgdLevels = 127;
// Window of a payload's zstd frame, which the decoder must keep in memory: 128 KiB.
inline constexpr int kZstdWindowLog = 17;
// Largest ratio of bytes before zstd to bytes after it. zstd cannot exceed it (a block of 128 KiB takes at
// least four bytes), so an update of zeros passes. The coverage bounds the bytes before zstd.
inline constexpr std::uint64_t kMaxZstdRatio = 32'768;
inline constexpr std::size_t kMaxTaskText = 64 << 10;
inline constexpr std::size_t kMaxTokenizer = 32 << 20;       // bytes of a run's tokenizer
inline constexpr std::size_t kMaxTokenizerPart = 256 << 10;  // of these in one TokenizerPart
inline constexpr std::size_t kMaxText = 1 << 10;             // names, reasons, messages
inline constexpr std::size_t kMaxSoftwareText = 256;    // in Hello and Welcome: both fit before authorisation
inline constexpr std::size_t kMaxPlatformText = 64;     // in Hello
inline constexpr std::size_t kMaxRunsInProgress = 256;  // in a Welcome
inline constexpr std::size_t kMaxLiveTracks = 16'384;   // in a TrainRequest
inline constexpr std::size_t kMaxFeatures = 16;
inline constexpr std::size_t kMaxFeatureText = 64;
inline constexpr std::size_t kMaxAggregated = 4'096;          // updates in one AggregateUpdates
inline constexpr std::size_t kMaxSwarmMembers = 1'024;        // in one message
inline constexpr std::size_t kMaxWarmupOrders = 64;           // of one kind, in one slot of a warm-up
inline constexpr std::uint64_t kMaxWarmupChunks = 4'000'000;  // of all updates in a warm-up
// Largest chunk in runs with a warm-up, in which one message relays a whole chunk; then with seal and name.
inline constexpr std::size_t kMaxWarmupChunkSize = 256 << 10;
inline constexpr std::size_t kMaxSealedChunk = kMaxWarmupChunkSize + 1024;
inline constexpr std::size_t kMaxSecureMembers = 65'536;   // contributors to one secure sum
inline constexpr std::size_t kMaxSecurePeers = 1'024;      // mask peers of one member
inline constexpr std::size_t kMaxSecureCells = 8'190;      // ranges of the model that are summed separately
inline constexpr std::size_t kMaxSecureCoverages = 4'096;  // different coverages of the members
inline constexpr std::size_t kMaxSecureScalars = 8'192;    // in a masked update
inline constexpr std::size_t kMaxTaskSums = 8'000;         // of an evaluation or of statistics
inline constexpr std::size_t kMaxSplitPart = 512 << 10;    // bytes of values in one SplitValues
inline constexpr std::size_t kMaxSplitParts = 1'024;
inline constexpr std::size_t kMaxSplitTokens = 65'536;      // of the sequences in one SplitValues
inline constexpr std::size_t kSplitWindow = 2;              // parts that are sent and not answered
inline constexpr std::size_t kMaxAddressText = 261;         // a DNS name of 255 bytes, a colon, a port
inline constexpr std::size_t kMaxCoordinatorAddresses = 4;  // in a join token and in a Contact
inline constexpr std::size_t kMaxRecordBytes = 4 << 10;     // a directory record's value
inline constexpr double kMaxJoules = 1e12;
inline constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 40;
inline constexpr std::chrono::hours kMaxTimeLeft{366 * 24};
// Credit: chunk bytes and chunks on one link that may be requested and not yet received.
inline constexpr std::size_t kFetchWindow = 2 << 20;
inline constexpr std::size_t kMaxOutstandingChunks = 512;
// Control bytes waiting to be written on one link; exceeding it, when the peer does not read, closes the
// link.
inline constexpr std::size_t kMaxQueuedControl = 4 << 20;
// Control frames and bytes from one peer in one tick (a twelfth of the idle timeout); more close the link.
inline constexpr std::size_t kMaxControlFramesPerTick = 10'000;
inline constexpr std::size_t kMaxControlBytesPerTick = 64 << 20;
// Lowest rate of a frame being received, after the grace period. A peer that sends single bytes would
// otherwise hold a buffer without ever counting as silent.
inline constexpr std::size_t kMinBytesPerSecond = 4 << 10;
inline constexpr std::chrono::seconds kSlowGrace{30};
// Longest pause that a Goodbye may ask for, so that a lying coordinator cannot silence a client for long.
inline constexpr std::chrono::minutes kMaxRetryAfter{10};
inline constexpr std::chrono::seconds kHandshakeTimeout{10};
// How long a connection that was not admitted still counts for its address: this long to twice as long.
inline constexpr std::chrono::seconds kRefusedPause{1};
inline constexpr std::chrono::seconds kPingInterval{20};
inline constexpr std::chrono::seconds kIdleTimeout{60};
// How long a closing link waits until its last bytes are sent and the peer has closed as well.
inline constexpr std::chrono::seconds kCloseTimeout{5};

}  // namespace fedge::protocol
