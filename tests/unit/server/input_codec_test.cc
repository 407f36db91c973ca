// A journal's records read back as they were written.
#include "server/store/input_codec.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace fedge;
using namespace fedge::server;

namespace {

constexpr TaskId kCodecTask{RoundNumber(7), TrackId(3)};

protocol::UpdateOffer some_offer() {
  const std::vector<std::byte> payload(5000, std::byte{1});
  return {.run = RunId(5),
          .round = kCodecTask.round,
          .update = protocol::make_manifest({}, Coverage::all(1250), payload, 4096),
          .samples = SampleCount(123),
          .steps = 4,
          .train_loss = 0.1,
          .norm = 1.0 / 3,
          .loss_rms = 0.2,
          .track = kCodecTask.track};
}

DevicePower some_power() {
  return {.hertz = {1e9 / 3, 2e9},
          .volts = {0.55, 0.9},
          .watts_lowest = 0.1,
          .watts_highest = 1.0 / 3,
          .cycles_per_flop = 0.7,
          .awake_watts = 0.25,
          .send_watts = 0.8,
          .receive_watts = 0.5,
          .send_bytes_per_second = 1e6 / 7,
          .receive_bytes_per_second = 6e6};
}

// Every kind of input, with values that an encoding might lose.
std::vector<RunEngine::Input> every_input() {
  aggregation::Policy policy{.clients = 4, .names = {"a", "b \"quoted\"", "c", "d"}, .strict = true};
  policy.disagreements.push_back({.kind = aggregation::DisagreementKind::kInbound,
                                  .clients = {ClientId(0)},
                                  .against = {ClientId(1), ClientId(3)},
                                  .from_round = RoundNumber(2),
                                  .until_round = RoundNumber(9),
                                  .deep = true});
  return {
      Expired{},
      RunEngine::ClientArrived{ClientId(1), SampleCount(600), 0.1, SampleCount(70)},
      RunEngine::ClientLeft{ClientId(0)},
      RunEngine::Described{
          ClientId(2),
          NodeRecord{.round = 3, .sequence = 9, .latency_ms = 0.1, .packet_loss = 0.3, .labels = {0.5, 2}}},
      RunEngine::Offered{ClientId(3), some_offer()},
      RunEngine::Stored{ClientId(4), kCodecTask},
      RunEngine::Damaged{ClientId(5), kCodecTask, {ErrorCode::kCorrupt, "a \"reason\"\n"}},
      RunEngine::Failed{ClientId(6), protocol::TaskFailed{RunId(5), kCodecTask.round, ErrorCode::kResource,
                                                          "no room", kCodecTask.track}},
      RunEngine::Committed{kCodecTask.round, kCodecTask.track},
      RunEngine::PolicyChanged{policy},
      RunEngine::Stop{"enough"},
      RunEngine::Restarted{},
      RunEngine::ClientLeft{ClientId(4), /*for_good=*/true},
      RunEngine::Committed{RoundNumber(2), TrackId(), TaskKind::kStatistics, /*made=*/false},
      RunEngine::ClientArrived{.client = ClientId(2),
                               .samples = SampleCount(600),
                               .power = std::make_shared<const DevicePower>(some_power())}};
}

}  // namespace

TEST_CASE("N5, journal records: a client that has left for good is told from one that may come back") {
  for (const bool for_good : {false, true}) {
    const auto record =
        decode_record(encode_record(RunEngine::Input(RunEngine::ClientLeft{ClientId(4), for_good})));
    const auto& left = std::get<RunEngine::ClientLeft>(std::get<RunEngine::Input>(*record));
    CHECK(left.client == ClientId(4));
    CHECK(left.for_good == for_good);
  }
}

TEST_CASE("N5, journal records: every input is written in one way and read back as what it was") {
  std::set<std::size_t> kinds;
  for (const RunEngine::Input& input : every_input()) {
    kinds.insert(input.index());
    const std::string bytes = encode_record(input);
    const auto record = decode_record(bytes);
    REQUIRE_MESSAGE(record, record.error().message);
    const auto& back = std::get<RunEngine::Input>(*record);
    REQUIRE(back.index() == input.index());
    CHECK(encode_record(back) == bytes);
  }
  CHECK(kinds.size() == std::variant_size_v<RunEngine::Input>);
}

TEST_CASE("N5, journal records: numbers keep every bit") {
  const auto inputs = every_input();
  const auto again = [&](std::size_t i) {
    return std::get<RunEngine::Input>(*decode_record(encode_record(inputs[i])));
  };
  const auto arrived = std::get<RunEngine::ClientArrived>(again(1));
  CHECK(arrived.power == nullptr);
  const auto described = std::get<RunEngine::ClientArrived>(again(inputs.size() - 1));
  REQUIRE(described.power);
  CHECK(*described.power == some_power());
  CHECK(arrived.client == ClientId(1));
  CHECK(arrived.samples == SampleCount(600));
  CHECK(arrived.capability == 0.1);
  const auto offered = std::get<RunEngine::Offered>(again(4));
  CHECK(offered.offer.update == some_offer().update);
  CHECK(offered.offer.norm == 1.0 / 3);
  CHECK(std::get<RunEngine::Described>(again(3)).record == std::get<RunEngine::Described>(inputs[3]).record);
  CHECK(std::get<RunEngine::PolicyChanged>(again(9)).policy ==
        std::get<RunEngine::PolicyChanged>(inputs[9]).policy);
  const auto committed = std::get<RunEngine::Committed>(again(inputs.size() - 2));
  CHECK(committed.task() == TaskId{RoundNumber(2), TrackId(), TaskKind::kStatistics});
  CHECK_FALSE(committed.made);
  CHECK(std::get<RunEngine::Committed>(again(8)).made);
  CHECK(std::get<RunEngine::Damaged>(again(6)).error.message == "a \"reason\"\n");
  CHECK(std::get<LostUpdate>(*decode_record(encode_record(LostUpdate{1ULL << 40}))).sequence == 1ULL << 40);
}

TEST_CASE(
    "A6 row 21, journal records: cut off or changed bytes are an error or another record, never a crash") {
  std::mt19937 random(5);
  for (const RunEngine::Input& input : every_input()) {
    const std::string bytes = encode_record(input);
    for (std::size_t size = 0; size < bytes.size(); ++size) (void)decode_record(bytes.substr(0, size));
    for (int i = 0; i < 200; ++i) {
      std::string changed = bytes;
      changed[random() % changed.size()] ^= static_cast<char>(1 << (random() % 8));
      if (const auto record = decode_record(changed)) {
        (void)encode_record(*record);
      } else {
        CHECK(record.error().code == ErrorCode::kCorrupt);
      }
    }
  }
  CHECK(decode_record("").error().code == ErrorCode::kCorrupt);
}
