#include "client/trainers/trainer_frames.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace fedge::client {
namespace {

std::string error_of_header(const std::string& header) {
  const auto parsed = parse_trainer_header(header);
  return parsed ? "" : parsed.error().message;
}

// A frame assembled by hand, byte by byte.
std::string frame(const std::string& header, const std::string& payload = "") {
  std::string bytes;
  for (std::uint32_t i = 0; i < 4; ++i) bytes += static_cast<char>(header.size() / (1U << (8 * i)) % 256);
  for (std::uint32_t i = 0; i < 8; ++i) bytes += static_cast<char>(payload.size() / (1ULL << (8 * i)) % 256);
  return bytes + header + payload;
}

struct Outcome {
  std::vector<TrainerFrame> frames;
  std::string error;
  bool inside = false;
};

// Reads `stream` in pieces of at most `step` bytes.
Outcome read_all(const std::string& stream, std::size_t step, std::size_t max_payload = 100) {
  TrainerFrameReader reader({.update = max_payload, .predictions = max_payload});
  Outcome outcome;
  for (std::size_t at = 0; at < stream.size();) {
    const auto room = reader.room();
    REQUIRE_FALSE(room.empty());
    const std::size_t count = std::min({step, room.size(), stream.size() - at});
    std::memcpy(room.data(), stream.data() + at, count);
    at += count;
    auto got = reader.filled(count);
    if (!got) {
      outcome.error = got.error().message;
      return outcome;
    }
    if (*got) outcome.frames.push_back(std::move(**got));
  }
  outcome.inside = reader.inside();
  return outcome;
}

const std::string kUpdate = R"({"type":"update","task":7,"samples":12,"steps":3,"train_loss":0.25})";

}  // namespace

TEST_CASE("trainer frames: a stream is the same messages in whatever pieces it comes") {
  const std::string stream = frame(R"({"type":"ready","protocol":1,"samples":12,"capability":0.5})") +
                             frame(R"({"type":"heartbeat"})") +
                             frame(R"({"type":"progress","fraction":0.5,"loss":1e1})") +
                             frame(kUpdate, "payload") + frame(R"({"type":"error","reason":"no"})");
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{13}, stream.size()}) {
    CAPTURE(step);
    const Outcome outcome = read_all(stream, step);
    REQUIRE(outcome.error == "");
    REQUIRE(outcome.frames.size() == 5);
    CHECK_FALSE(outcome.inside);
    const auto& ready = std::get<TrainerReady>(outcome.frames[0].message);
    CHECK(ready.samples == SampleCount(12));
    CHECK(ready.capability == 0.5);
    CHECK_FALSE(std::get<TrainerProgress>(outcome.frames[1].message).fraction);
    CHECK(std::get<TrainerProgress>(outcome.frames[2].message).loss == 10.0);
    const auto& update = std::get<TrainerUpdate>(outcome.frames[3].message);
    CHECK(update.task == 7);
    CHECK(update.samples == SampleCount(12));
    CHECK(update.steps == 3);
    CHECK(update.train_loss == 0.25);
    CHECK(update.rms_loss == 0.25);
    const auto& payload = outcome.frames[3].payload;
    CHECK(std::string(reinterpret_cast<const char*>(payload.data()), payload.size()) == "payload");
    CHECK(std::get<TrainerFailure>(outcome.frames[4].message).reason == "no");
    CHECK_FALSE(std::get<TrainerFailure>(outcome.frames[4].message).task);
  }
  CHECK(read_all(stream.substr(0, stream.size() - 1), 5).inside);
  CHECK(read_all(stream + "x", 5).inside);
}

TEST_CASE("trainer frames: lengths are judged before there is room for what they announce") {
  std::string lengths(12, '\0');
  lengths[0] = 2;
  const auto with_payload = [&](std::uint64_t size) {
    std::string bytes = lengths;
    for (std::uint32_t i = 0; i < 8; ++i) bytes[4 + i] = static_cast<char>(size >> (8 * i) & 0xFF);
    return bytes;
  };
  CHECK(read_all(with_payload(100), 12).error == "");
  CHECK(read_all(with_payload(101), 12)
            .error.starts_with(
                "the trainer program announces a payload of 101 bytes; at most 100 are allowed"));
  CHECK(read_all(with_payload(std::uint64_t{1} << 60), 12).error.find("1152921504606846976") !=
        std::string::npos);
  CHECK(read_all(with_payload(std::numeric_limits<std::uint64_t>::max()), 12).error != "");
  for (const std::uint32_t size : {0U, 1U, 65'537U, 0x80000000U, 0xFFFFFFFFU}) {
    std::string bytes = lengths;
    for (std::uint32_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(size >> (8 * i) & 0xFF);
    CHECK(read_all(bytes, 12).error.starts_with("the trainer program announces a header of " +
                                                std::to_string(size) +
                                                " bytes; a header has 2 to 65536 bytes"));
  }
  // A header of the largest permitted size is accepted.
  const std::string large = R"({"type":"heartbeat","x":")" + std::string(65'536 - 27, 'x') + "\"}";
  REQUIRE(large.size() == 65'536);
  CHECK(read_all(frame(large), 4096).frames.size() == 1);
}

TEST_CASE("trainer frames: a payload belongs to an update, and an update has one") {
  CHECK(read_all(frame(kUpdate), 100).error == "the trainer program sent an update without a model");
  CHECK(read_all(frame(R"({"type":"heartbeat"})", "abc"), 100).error ==
        "the trainer program sent 3 bytes of payload with a message type that has no payload");
}

TEST_CASE("trainer frames: a header that breaks the rules is refused, and what it breaks is said") {
  const std::string who = "a header from the trainer program ";
  CHECK(error_of_header("{}") == who + "has no string \"type\"");
  CHECK(error_of_header("[1]") == who + "is a list, not an object");
  CHECK(error_of_header("7") == who + "is a single value, not an object");
  CHECK(error_of_header(R"({"type":"ready",})").starts_with(who + "is not valid JSON at byte "));
  CHECK(error_of_header("{\"type\":\"\xff\"}").starts_with(who + "is not valid JSON at byte "));
  CHECK(error_of_header(R"({"type":"update","train_loss":NaN})").starts_with(who + "is not valid JSON"));
  CHECK(error_of_header(R"({"type":"error","type":"error"})") == who + "holds the key \"type\" twice");
  CHECK(error_of_header(R"({"type":"erorr"})") ==
        "the trainer program sent a message of unknown type \"erorr\"");
  CHECK(error_of_header(R"({"type":{"a":"ready"}})") == who + "has no string \"type\"");
  const std::string update = "the trainer program's message \"update\" ";
  CHECK(error_of_header(R"({"type":"update"})") == update + "has no task");
  CHECK(error_of_header(R"({"type":"update","task":1,"samples":-1})") ==
        update + "needs samples as an integer from 1 to 2^53");
  CHECK(error_of_header(R"({"type":"update","task":1,"samples":1,"steps":1.5})") ==
        update + "needs steps as an integer from 1 to 2^53");
  CHECK(error_of_header(R"({"type":"update","task":1,"samples":1,"steps":1,"train_loss":"low"})") ==
        update + "needs train_loss as a number from -1e+30 to 1e+30");
  CHECK(error_of_header(R"({"type":"update","task":1,"samples":1,"steps":18446744073709551615})") ==
        update + "needs steps as an integer from 1 to 2^53");
  CHECK(error_of_header(R"({"type":"ready","protocol":1,"samples":1,"capability":0})") ==
        "the trainer program's message \"ready\" needs capability as a number from 0.001 to 1.0");
  CHECK(error_of_header(R"({"type":"ready","protocol":1,"samples":1099511627776})") == "");
  CHECK(error_of_header(R"({"type":"ready","protocol":1,"samples":1099511627777})") ==
        "the trainer program's message \"ready\" needs samples of at most 2^40");
  CHECK(error_of_header(R"({"type":"error"})") ==
        "the trainer program's message \"error\" has no string reason");
}

TEST_CASE("trainer frames: nesting is allowed to 32 and unknown keys are passed over") {
  const auto nested = [](std::size_t lists) {
    return R"({"future":)" + std::string(lists, '[') + std::string(lists, ']') + R"(,"type":"heartbeat"})";
  };
  CHECK(error_of_header(nested(31)) == "");
  CHECK(error_of_header(nested(32)) == "a header from the trainer program is nested more than 32 deep");
  CHECK(error_of_header(nested(30'000)) == "a header from the trainer program is nested more than 32 deep");
  // Duplicate keys in nested objects are ignored.
  CHECK(error_of_header(R"({"type":"heartbeat","x":{"a":1,"a":2,"type":"error"}})") == "");
}

TEST_CASE("trainer frames: the reason of an error is made fit to be shown, and cut") {
  const auto parsed = parse_trainer_header(R"({"type":"error","task":2,"reason":"a\nb\u0007)" +
                                           std::string(1000, 'x') + "\"}");
  REQUIRE(parsed);
  const auto& failure = std::get<TrainerFailure>(*parsed);
  CHECK(failure.reason == "a?b?" + std::string(kMaxTrainerReason - 4, 'x'));
  CHECK(failure.task == 2);
}

TEST_CASE("trainer frames: what the daemon sends is what the protocol's page shows") {
  CHECK(stop_frame(3, true) == frame(R"({"type":"stop","task":3,"give_up":true})"));
  const Coverage all = Coverage::all(10);
  TrainerTask task{.task = 1,
                   .round = RoundNumber(2),
                   .track = TrackId(0),
                   .seed = 5,
                   .time_left = seconds(1.5),
                   .data_share = 0.25,
                   .coverage = all,
                   .model_size = 10,
                   .payload_bytes = 4};
  const auto whole = train_frame(task);
  REQUIRE(whole);
  CHECK(
      *whole + "abcd" ==
      frame(R"({"type":"train","task":1,"round":2,"track":0,"seed":5,"seconds_left":1.5,"data_share":0.25})",
            "abcd"));
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < 2'000'000; ++i) ranges.push_back({2 * i, 2 * i + 1});
  const Coverage crumbs = Coverage::of(std::move(ranges));
  const auto refused = train_frame({.task = 1, .coverage = crumbs, .model_size = 4'000'000});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kResource);
}

}  // namespace fedge::client
