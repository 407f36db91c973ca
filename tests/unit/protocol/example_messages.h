// One example of every message, with every field set to a non-default value.
#pragma once

#include <vector>

#include "protocol/messages.h"

namespace fedge::protocol {

inline Digest digest_of(std::uint8_t first) {
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<std::uint8_t>(first + i);
  return digest;
}

// 3,000 parameters in two ranges: 12,000 bytes in three chunks of 4,096; the last one has 3,808.
inline Manifest example_manifest() {
  return {.layout = digest_of(1),
          .coverage = Coverage::of({{10, 1010}, {2000, 4000}}),
          .codec = Codec::kFloat32,
          .payload_size = 12'000,
          .chunk_size = 4096,
          .chunks = {digest_of(100), digest_of(150), digest_of(200)}};
}

// The same parameters as QSGD in five bits (six norms and 1,875 bytes of levels), with zstd.
inline Manifest example_compressed_manifest() {
  return {.layout = digest_of(1),
          .coverage = example_manifest().coverage,
          .codec = Codec::kQsgd,
          .payload_size = 1'500,
          .chunk_size = 4096,
          .chunks = {digest_of(100)},
          .raw_size = 1'899,
          .levels = 15};
}

// The same parameters as masked integers.
inline Manifest example_masked_manifest() {
  Manifest manifest = example_manifest();
  manifest.codec = Codec::kMasked32;
  return manifest;
}

inline SecureSession example_session() { return {RunId(5), RoundNumber(3), TrackId(4), 2}; }

inline SecureAdvertisement example_keys(std::uint8_t first) {
  return {.channel = {{first, 2}},
          .mask = {{first, 3}},
          .commitment = Digest{first, 4},
          .fast_aes = true,
          .signature = {first, 5}};
}

inline std::vector<Message> example_messages() {
  return {
      Hello{1, 3, {"swarm", "int8"}, "fedge-client 0.1.0", "c0ffee"},
      Welcome{1,
              {"int8"},
              "fedge-coordinator 0.1.0",
              ClientId(7),
              true,
              {RunId(5), RunId(0x0123456789abcdef)},
              std::chrono::milliseconds(45'250)},
      Goodbye{ErrorCode::kResource, "the disk is full", std::chrono::milliseconds(12'500)},
      RunDescription{RunId(0x0123456789abcdef), "fashion", 42, "[data]\nname = \"\xc3\xa4\"\n\tx = 1\n",
                     digest_of(9)},
      TrainRequest{RunId(5),
                   RoundNumber(3),
                   example_manifest(),
                   Coverage::of({{10, 20}, {2500, 2600}}),
                   std::chrono::milliseconds(90'500),
                   RoundNumber(2),
                   example_manifest(),
                   TrackId(4),
                   0.75,
                   {TrackId(0), TrackId(4), TrackId(300)}},
      UpdateOffer{RunId(5), RoundNumber(3), example_manifest(), SampleCount(60), 12, 0.125, 2.5, 0.75,
                  TrackId(4)},
      TaskFailed{RunId(5), RoundNumber(3), ErrorCode::kUnavailable, "battery is low", TrackId(4)},
      UpdateVerdict{RunId(5), RoundNumber(3), false, ErrorCode::kStale, "the round is over", TrackId(4)},
      UpdateVerdict{RunId(5), RoundNumber(3), true, ErrorCode::kInvalid, ""},
      CancelTask{RunId(5), RoundNumber(3), "enough updates", TrackId(4)},
      RunEnded{RunId(5), "all rounds done"},
      RunAnswer{RunId(5), true, SampleCount(60), {}, "", 0.2},
      RunAnswer{RunId(5), false, SampleCount(0), ErrorCode::kNotFound, "no data set here"},
      PublishRecord{RunId(5), RoundNumber(3), 17, {std::byte{1}, std::byte{0}, std::byte{0xff}}},
      UpdateOffer{RunId(5), RoundNumber(3), example_compressed_manifest(), SampleCount(60), 12, 0.125},
      Hello{.software = "test 1", .listens = ":7010"},
      TrainRequest{.run = RunId(5),
                   .round = RoundNumber(3),
                   .model = example_manifest(),
                   .coverage = example_manifest().coverage,
                   .last_round = RoundNumber(0),
                   .again = true,
                   .swarm = true},
      SwarmMembers{Digest{1, 2},
                   {{ClientId(3), PublicKey{{9, 8}}, "192.0.2.7:7010"}, {ClientId(4), PublicKey{{7}}, ""}},
                   {ClientId(1), ClientId(2)}},
      ChunksHeld{Digest{1, 2}, {std::byte{0x81}, std::byte{0x01}}, {std::byte{0x83}, std::byte{0x00}}},
      ChunksAdded{Digest{1, 2}, {7, 3}},
      SwarmState{false, true},
      ChunkCancelled{Digest{1, 2}, 9},
      ServerlessUpdate{RunId(5), RoundNumber(3), TrackId(4), example_compressed_manifest()},
      UpdateHeld{RunId(5), RoundNumber(3), TrackId(4), Digest{1, 2}, true, ErrorCode::kInvalid, ""},
      UpdateHeld{RunId(5), RoundNumber(3), TrackId(4), Digest{1, 2}, false, ErrorCode::kCorrupt,
                 "value 7 is not finite"},
      AggregateUpdates{RunId(5),
                       RoundNumber(3),
                       TrackId(4),
                       {{Digest{1, 2}, SampleCount(60), 12, 0.5}, {Digest{1, 3}, SampleCount(1), 1, 1}}},
      AggregateMade{RunId(5), RoundNumber(3), TrackId(4), example_manifest()},
      WarmupPlan{.run = RunId(5),
                 .round = RoundNumber(3),
                 .track = TrackId(4),
                 .swarm = Digest{1, 2},
                 .commitment = Digest{3},
                 .members = 20,
                 .number = 7,
                 .degree = 2,
                 .chunks = 100,
                 .cover = 11,
                 .kappa = 1,
                 .lag = 2,
                 .spray = 20,
                 .neighbours = {{3, ClientId(9)}, {8, ClientId(2)}}},
      WarmupSlot{RunId(5),
                 RoundNumber(3),
                 TrackId(4),
                 6,
                 {{Digest{1, 2}, 4, ClientId(9)}},
                 {{99, ClientId(9), ClientId(2), PublicKey{{9, 8}}}}},
      WarmupOver{RunId(5), RoundNumber(3), TrackId(4), 0x1234567890abcdef, "nothing has moved"},
      SealedChunk{Digest{1, 2}, ClientId(4), {std::byte{1}, std::byte{0}, std::byte{0xff}}},
      UpdateOffer{.run = RunId(5),
                  .round = RoundNumber(3),
                  .update = example_masked_manifest(),
                  .samples = SampleCount(1),
                  .masked_scalars = {1, 0xfedcba9876543210}},
      TrainRequest{.run = RunId(5),
                   .round = RoundNumber(3),
                   .model = example_manifest(),
                   .coverage = example_manifest().coverage,
                   .secure_attempt = 2},
      TrainRequest{.run = RunId(5),
                   .round = RoundNumber(1),
                   .model = example_manifest(),
                   .coverage = example_manifest().coverage,
                   .kind = TaskKind::kStatistics,
                   .statistics = {-1.5F, 0.0F, 2e30F}},
      UpdateOffer{.run = RunId(5),
                  .round = RoundNumber(1),
                  .update = example_manifest(),
                  .samples = SampleCount(1),
                  .kind = TaskKind::kStatistics,
                  .sums = {0, 3, INT64_MAX}},
      SecureKeys{example_session(), example_keys(1)},
      SecureRoster{.session = example_session(),
                   .seed = Digest{7},
                   .members = 20,
                   .number = 7,
                   .degree = 19,
                   .threshold = 14,
                   .complete = true,
                   .cipher = StreamCipher::kChaCha20,
                   .cells = {{10, 500}, {500, 1010}, {2000, 4000}},
                   .coverages = {Coverage::of({{10, 1010}}), Coverage::of({{500, 1010}, {2000, 4000}})},
                   .coverage_of = {0, 1, 1, 0},
                   .peers = {{3, ClientId(9), PublicKey{{9, 8}}, example_keys(2)},
                             {8, ClientId(12), PublicKey{{7}}, example_keys(3)}}},
      SecureShares{example_session(), {{3, {1, 2}, {3}}, {8, {4}, {5, 6}}}},
      SecurePeerShares{example_session(), {{3, {1, 2}}, {8, {4}}}},
      SecureSurvivors{example_session(), {0, 3, 19}},
      SecureConsent{example_session(), Signature{1, 2, 3}},
      SecureConsents{example_session(), {{3, Signature{1}}, {8, Signature{2}}}},
      SecureUnmask{example_session(), {{3, {1, 2}}, {7, {3}}}, {{8, {4}, {5, 6}}}},
      SplitValues{.run = RunId(5),
                  .round = RoundNumber(3),
                  .kind = SplitKind::kActivations,
                  .step = 7,
                  .first = 4,
                  .values = {std::byte{1}, std::byte{0}, std::byte{0xff}},
                  .steps = 20,
                  .total = 900,
                  .last = true,
                  .sent = {2, 1},
                  .targets = {0, 300, 2},
                  .samples = {7, 0}},
      SplitValues{.run = RunId(5),
                  .round = RoundNumber(3),
                  .kind = SplitKind::kGradients,
                  .step = 7,
                  .first = 4,
                  .values = {std::byte{1}},
                  .losses = {0.5, 3.25}},
      SplitValues{.run = RunId(5),
                  .round = RoundNumber(3),
                  .kind = SplitKind::kOutputs,
                  .step = 7,
                  .part = 2,
                  .parts = 3,
                  .values = {std::byte{9}, std::byte{8}}},
      SplitTaken{RunId(5), RoundNumber(3), 2},
      SplitEnded{RunId(5), RoundNumber(3), 20},
      SplitKept{RunId(5), RoundNumber(3)},
      SplitRefused{RunId(5), RoundNumber(3), ErrorCode::kStale, "begin again"},
      UpdateOffer{.run = RunId(5),
                  .round = RoundNumber(3),
                  .update = example_manifest(),
                  .samples = SampleCount(60),
                  .steps = 12,
                  .activation_correlation = 0.9},
      TokenizerRequest{RunId(5), 262'144},
      TokenizerPart{RunId(5), 262'147, 262'144, std::string("\0\n\xff", 3)},
  };
}

}  // namespace fedge::protocol
