#include "protocol/codec.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "core/crypto/sha256.h"
#include "protocol/wire_lengths.h"
#include "tests/unit/protocol/example_messages.h"

using namespace fedge;
using namespace fedge::protocol;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Encodes and decodes the message; returns an error if a peer would refuse it.
Result<Message> received(const Message& message) {
  return decode(type_of(message), bytes_of(encode(message)));
}

std::string refusal(const Message& message) {
  const auto result = received(message);
  return result ? "accepted" : result.error().message;
}

template <class T, class Change>
Message changed(T message, Change change) {
  change(message);
  return message;
}

TrainRequest train_request() { return std::get<TrainRequest>(example_messages()[6]); }
UpdateOffer update_offer() { return std::get<UpdateOffer>(example_messages()[7]); }

}  // namespace

TEST_CASE("codec: every message survives the wire in every field") {
  for (const Message& message : example_messages()) {
    const auto back = received(message);
    REQUIRE_MESSAGE(back, name_of(message));
    CHECK_MESSAGE(*back == message, name_of(message));
    CHECK(frame_size(message) == encode_frame(message).size());
    CHECK(encode_frame(message).size() == kFrameHeaderSize + encode(message).size());
  }
}

TEST_CASE("codec: the frames of all messages keep their bytes from version to version") {
  std::string frames;
  for (const Message& message : example_messages()) frames += encode_frame(message);
  CHECK(to_hex(sha256(frames)) == "4feb6bfbbce6074030076b50f94764e87c5511363189db3ba2f102d2b8ba95b5");
}

TEST_CASE("codec: a message about a run names it, also one about a session of the run") {
  const std::set<std::string> about_no_run = {
      "hello",        "welcome",       "goodbye",         "chunks_held", "chunks_added", "swarm_state",
      "sealed_chunk", "swarm_members", "chunk_cancelled", "contact",     "contact_kept"};
  for (const Message& message : example_messages()) {
    const std::string name = name_of(message);
    std::optional<RunId> expected = RunId(name == "run_description" ? 0x0123456789abcdef : 5);
    if (about_no_run.contains(name)) expected.reset();
    CHECK_MESSAGE(run_of(message) == expected, name);
  }
}

TEST_CASE("codec: the bytes of a verdict are those of the protobuf encoding, worked out by hand") {
  // run: field 1, fixed64. round: field 2, varint. accepted: field 3, varint.
  const std::string bytes("\x09\x05\0\0\0\0\0\0\0\x10\x03\x18\x01", 13);
  CHECK(encode(UpdateVerdict{RunId(5), RoundNumber(3), true, ErrorCode::kInvalid, ""}) == bytes);
}

TEST_CASE("A1 row 21: codec: a message cut anywhere never crashes, and never passes for the whole") {
  for (const Message& message : example_messages()) {
    const std::string whole = encode(message);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto cut = decode(type_of(message), bytes_of(whole).first(size));
      if (cut) CHECK_FALSE(*cut == message);
    }
  }
}

TEST_CASE("A1 row 33: codec: with any one bit flipped a message is refused or is a valid message") {
  for (const Message& message : example_messages()) {
    const std::string whole = encode(message);
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string flipped = whole;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      const auto result = decode(type_of(message), bytes_of(flipped));
      if (!result) CHECK_FALSE(result.error().message.empty());
      if (result) CHECK(received(*result));
    }
  }
}

TEST_CASE("codec: what is to be aggregated is bounded and in one order") {
  const AggregateUpdates good{
      .run = RunId(1),
      .round = RoundNumber(2),
      .track = TrackId(0),
      .parts = {{Digest{1}, SampleCount(1), 1, 1}, {Digest{2}, SampleCount(1), 1, 1}}};
  const auto with = [&](auto change) { return refusal(changed(good, change)); };
  CHECK(with([](auto&) {}) == "accepted");
  CHECK(with([](auto& m) { m.parts[1].object = m.parts[0].object; }) == "accepted");
  CHECK(with([](auto& m) { m.parts.clear(); }).find("parts is empty") != std::string::npos);
  CHECK(with([](auto& m) { m.parts.resize(4097, m.parts[0]); }).find("4096") != std::string::npos);
  CHECK(with([](auto& m) { std::swap(m.parts[0], m.parts[1]); }).find("order") != std::string::npos);
  CHECK(with([](auto& m) { m.parts[0].weight = SampleCount(0); }).find("weight") != std::string::npos);
  CHECK(with([](auto& m) { m.parts[0].steps = 0; }).find("steps") != std::string::npos);
  CHECK(with([](auto& m) { m.parts[0].factor = -1; }).find("factor") != std::string::npos);
  CHECK(with([](auto& m) { m.parts[0].factor = std::numeric_limits<double>::quiet_NaN(); }).find("factor") !=
        std::string::npos);
}

TEST_CASE("codec: a plan or a slot of a warm-up whose numbers do not fit each other is refused") {
  const auto& messages = example_messages();
  const auto find = [&](auto type) {
    using T = decltype(type);
    return std::get<T>(
        *std::ranges::find_if(messages, [](const auto& m) { return std::holds_alternative<T>(m); }));
  };
  const WarmupPlan plan = find(WarmupPlan{});
  const auto with = [&](auto change) { return refusal(changed(plan, change)); };
  CHECK(with([](auto&) {}) == "accepted");
  CHECK(with([](auto& m) { m.members = 2; }).find("members is not between 3") != std::string::npos);
  CHECK(with([](auto& m) { m.number = 20; }).find("number is not less") != std::string::npos);
  CHECK(with([](auto& m) { m.degree = 20; }).find("degree") != std::string::npos);
  CHECK(with([](auto& m) { m.chunks = 0; }).find("chunks is not between 1") != std::string::npos);
  CHECK(with([](auto& m) { m.members = 4096, m.chunks = 1000; }).find("4000000") != std::string::npos);
  CHECK(with([](auto& m) { m.spray = 101; }).find("spray") != std::string::npos);
  CHECK(with([](auto& m) { m.neighbours[0].number = 7; }).find("not another member") != std::string::npos);
  CHECK(with([](auto& m) { std::swap(m.neighbours[0], m.neighbours[1]); }).find("order") !=
        std::string::npos);
  CHECK(with([](auto& m) { m.neighbours.resize(1025); }).find("1024") != std::string::npos);
  const WarmupSlot slot = find(WarmupSlot{});
  CHECK(refusal(changed(slot, [](auto& m) { m.asks.resize(65); })).find("64") != std::string::npos);
  CHECK(refusal(changed(slot, [](auto& m) { m.sprays.resize(65); })).find("64") != std::string::npos);
  const SealedChunk sealed = find(SealedChunk{});
  CHECK(refusal(changed(sealed, [](auto& m) { m.sealed.clear(); })).find("263168") != std::string::npos);
  CHECK(refusal(changed(sealed, [](auto& m) { m.sealed.resize(263'169); })).find("263168") !=
        std::string::npos);
}

TEST_CASE("codec: any header read as any other type never crashes") {
  for (const Message& message : example_messages())
    for (unsigned type = 0; type < 256; ++type) {
      const auto result = decode(static_cast<MessageType>(type), bytes_of(encode(message)));
      if (std::string(name_of(static_cast<MessageType>(type))) == "unknown")
        CHECK(result.error().code == ErrorCode::kUnsupported);
    }
}

TEST_CASE("codec: fields of a later version are ignored") {
  // Field 1000, length-delimited, three bytes; field 1001, varint.
  const std::string extra(
      "\xc2\x3e\x03"
      "abc"
      "\xc8\x3e\x7f",
      9);
  for (const Message& message : example_messages()) {
    const auto result = decode(type_of(message), bytes_of(encode(message) + extra));
    REQUIRE(result);
    CHECK(*result == message);
  }
}

TEST_CASE("codec: an error code of a later version counts as invalid") {
  const auto result = decode(kTypeOf<Goodbye>, bytes_of(std::string("\x08\x63", 2)));
  REQUIRE(result);
  CHECK(std::get<Goodbye>(*result).code == ErrorCode::kInvalid);
}

TEST_CASE("codec: a goodbye keeps a peer away for ten minutes at the most") {
  // Field 3, a varint: 600,000 and 600,001.
  const auto longest = decode(kTypeOf<Goodbye>, bytes_of(std::string("\x18\xc0\xcf\x24", 4)));
  REQUIRE(longest);
  CHECK(std::get<Goodbye>(*longest).retry_after == std::chrono::minutes(10));
  const auto longer = decode(kTypeOf<Goodbye>, bytes_of(std::string("\x18\xc1\xcf\x24", 4)));
  REQUIRE_FALSE(longer);
  CHECK(longer.error().message == "goodbye: retry_after_ms is above 600000");
  // The encoder limits the delay, so that the message is accepted.
  const auto ours = received(Goodbye{ErrorCode::kUnavailable, "", std::chrono::hours(5)});
  REQUIRE(ours);
  CHECK(std::get<Goodbye>(*ours).retry_after == std::chrono::minutes(10));
}

TEST_CASE("codec: a welcome spreads those who come back over ten minutes at the most") {
  // Field 7, a varint: 600,000 and 600,001.
  const auto longest = decode(kTypeOf<Welcome>, bytes_of(std::string("\x38\xc0\xcf\x24", 4)));
  REQUIRE(longest);
  CHECK(std::get<Welcome>(*longest).spread == std::chrono::minutes(10));
  const auto longer = decode(kTypeOf<Welcome>, bytes_of(std::string("\x38\xc1\xcf\x24", 4)));
  REQUIRE_FALSE(longer);
  CHECK(longer.error().message == "welcome: spread_ms is above 600000");
}

TEST_CASE("A6 row 20: codec: lengths that lie within a message are refused without being allocated") {
  // Field 4 (software), length 2^31-1; length 2^63; a varint of eleven bytes; a group that never ends.
  for (const std::string& bad :
       {std::string("\x22\xff\xff\xff\xff\x07"), std::string("\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), std::string(60, '\x0b')}) {
    const auto result = decode(kTypeOf<Hello>, bytes_of(bad));
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "hello: its bytes are not a valid protobuf message");
  }
  CHECK_FALSE(decode(kTypeOf<Hello>, bytes_of(std::string(kMaxHeader + 1, '\0'))));
}

TEST_CASE("codec: text out of bounds is refused with the field's name") {
  CHECK(refusal(Hello{.token = "bad\x80"}).starts_with("hello: "));
  CHECK(refusal(Hello{.token = "a\nb"}) == "hello: token contains a control character at byte 1");
  CHECK(refusal(Hello{.token = std::string(kMaxText + 1, 'a')}) ==
        "hello: token has 1025 bytes; at most 1024 are allowed");
  // The encoder shortens our software name. Field 4 of Hello and field 3 of Welcome come from another sender.
  const std::string name = std::string("\x81\x02", 2) + std::string(kMaxSoftwareText + 1, 'a');
  for (const auto& [type, field] :
       {std::pair{kTypeOf<Hello>, "\x08\x01\x10\x01\x22"}, std::pair{kTypeOf<Welcome>, "\x1a"}}) {
    const auto long_name = decode(type, bytes_of(field + name));
    REQUIRE_FALSE(long_name);
    CHECK(long_name.error().message ==
          name_of(type) + std::string(": software has 257 bytes; at most 256 are allowed"));
  }
  CHECK(refusal(Hello{.features = {std::string(65, 'a')}}) ==
        "hello: features has 65 bytes; at most 64 are allowed");
  CHECK(refusal(Hello{.features = std::vector<std::string>(17, "a")}) ==
        "hello: features: the number of elements is above 16");
  CHECK(refusal(Hello{.min_version = 2, .max_version = 1}).find("range of versions") != std::string::npos);
  CHECK(refusal(RunDescription{.name = "", .task = "", .layout = {}}) == "run_description: name is empty");
  CHECK(refusal(RunDescription{.name = "r", .task = std::string(kMaxTaskText + 1, 'a'), .layout = {}})
            .starts_with("run_description: task has 65537 bytes"));
}

TEST_CASE("codec: a contact has at most four addresses, each with a port, and a whole key or none") {
  CHECK(received(Contact{}));
  CHECK(refusal(Contact{{5, "fedge.example.org:7433"}, {}}) ==
        "contact: addresses: the number of elements is above 4");
  CHECK(refusal(Contact{{"fedge.example.org:0"}, {}}) == "contact: addresses contain port 0");
  CHECK(refusal(Contact{{"fedge.example.org"}, {}}).starts_with("contact: addresses: "));
  CHECK(refusal(Contact{{std::string(kMaxAddressText, 'a') + ":1"}, {}}).starts_with("contact: addresses"));
  CHECK(decode(kTypeOf<Contact>, bytes_of("\x12\x02xx")).error().message.starts_with("contact: next_key: "));
  CHECK(decode(kTypeOf<ContactKept>, {}).error().message.starts_with("contact_kept: next_key: "));
}

TEST_CASE("codec: the reason of an error of ours always arrives, whatever is in it") {
  const auto result = received(Goodbye{ErrorCode::kCorrupt, "line\none\x80" + std::string(2000, 'x')});
  REQUIRE(result);
  const std::string& reason = std::get<Goodbye>(*result).reason;
  CHECK(reason.size() == kMaxText);
  CHECK(reason.starts_with("line?one?xx"));
}

TEST_CASE("codec: numbers out of bounds are refused with the field's name") {
  const auto loss = [](double value) {
    return refusal(changed(update_offer(), [&](UpdateOffer& m) { m.train_loss = value; }));
  };
  CHECK(loss(std::numeric_limits<double>::quiet_NaN()) == "update_offer: train_loss is not finite");
  CHECK(loss(std::numeric_limits<double>::infinity()) == "update_offer: train_loss is not finite");
  CHECK(loss(-std::numeric_limits<double>::infinity()) == "update_offer: train_loss is not finite");
  CHECK(loss(-1e300) == "accepted");
  const auto rms = [](double value) {
    return refusal(changed(update_offer(), [&](UpdateOffer& m) { m.loss_rms = value; }));
  };
  CHECK(rms(-1e-9) == "update_offer: loss_rms is not a finite number of at least 0");
  CHECK(rms(std::numeric_limits<double>::infinity()) ==
        "update_offer: loss_rms is not a finite number of at least 0");
  CHECK(rms(std::numeric_limits<double>::quiet_NaN()) ==
        "update_offer: loss_rms is not a finite number of at least 0");
  CHECK(rms(0) == "accepted");
  CHECK(rms(1e300) == "accepted");
  const auto wanted = [](double value) {
    return refusal(changed(update_offer(), [&](UpdateOffer& m) { m.wanted_share = value; }));
  };
  for (const double value :
       {-1e-9, 1.0000001, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(wanted(value) == "update_offer: wanted_share is not between 0 and 1");
  for (const double value : {0.0, 1e-300, 1.0}) CHECK(wanted(value) == "accepted");
  const auto samples = [](std::uint64_t value) {
    return refusal(changed(update_offer(), [&](UpdateOffer& m) { m.samples = SampleCount(value); }));
  };
  CHECK(samples(0) == "update_offer: samples is not between 1 and 2^40");
  CHECK(samples(kMaxSamples) == "accepted");
  CHECK(samples(std::uint64_t{1} << 60) == "update_offer: samples is not between 1 and 2^40");
  const auto record = [](std::size_t size) {
    return refusal(PublishRecord{RunId(1), RoundNumber(1), 1, std::vector<std::byte>(size)});
  };
  CHECK(record(1) == "accepted");
  CHECK(record(kMaxRecordBytes) == "accepted");
  CHECK(record(0) == "publish_record: value is not 1 to 4096 bytes long");
  CHECK(record(kMaxRecordBytes + 1) == "publish_record: value is not 1 to 4096 bytes long");
  const auto share = [](double value) {
    return refusal(changed(train_request(), [&](TrainRequest& m) { m.data_share = value; }));
  };
  CHECK(share(1e-9) == "accepted");
  CHECK(share(-0.5) == "train_request: data_share is not between 0 and 1");
  const auto tracks = [](const std::vector<TrackId>& live) {
    return refusal(changed(train_request(), [&](TrainRequest& m) { m.live_tracks = live; }));
  };
  std::vector<TrackId> most;
  for (std::uint32_t i = 0; i < kMaxLiveTracks; ++i) most.emplace_back(2 * i);
  CHECK(tracks({}) == "accepted");
  CHECK(tracks(most) == "accepted");
  most.emplace_back(UINT32_MAX);
  const char* const bound = "train_request: live_tracks are not in ascending order";
  CHECK(tracks(most) == "train_request: live_tracks: the number of elements is above 16384");
  CHECK(tracks({TrackId(1), TrackId(1)}) == bound);
  CHECK(tracks({TrackId(2), TrackId(1)}) == bound);
  const auto statistics = [](TaskKind kind, const std::vector<float>& numbers) {
    return refusal(changed(train_request(), [&](TrainRequest& m) {
      m.kind = kind;
      m.statistics = numbers;
    }));
  };
  CHECK(statistics(TaskKind::kTraining, {}) == "accepted");
  CHECK(statistics(TaskKind::kEvaluation, {5, -5, 2, 0.5F}) == "accepted");
  CHECK(statistics(TaskKind::kStatistics, std::vector<float>(kMaxTaskSums)) == "accepted");
  CHECK(statistics(TaskKind::kStatistics, std::vector<float>(kMaxTaskSums + 1)) ==
        "train_request: statistics: the number of elements is above 8000");
  CHECK(statistics(TaskKind::kStatistics, {}) == "train_request: statistics has no edges");
  CHECK(statistics(TaskKind::kStatistics, {0, INFINITY}) ==
        "train_request: a number of statistics is not finite");
  CHECK(statistics(TaskKind::kTraining, {NAN, 1}) == "train_request: a number of statistics is not finite");
  CHECK(statistics(TaskKind::kTraining, {1, 2, 3}) ==
        "train_request: statistics does not have a deviation for each mean");
  CHECK(statistics(TaskKind::kTraining, {1, 0}) == "train_request: a deviation of statistics is not above 0");
  CHECK(statistics(static_cast<TaskKind>(3), {}) == "train_request: kind is unknown");
  const auto capability = [](double value) {
    return refusal(RunAnswer{RunId(1), true, SampleCount(1), {}, {}, value});
  };
  CHECK(capability(1e-9) == "accepted");
  CHECK(capability(1.01) == "run_answer: capability is not between 0 and 1");
  CHECK(capability(-0.5) == "run_answer: capability is not between 0 and 1");
  CHECK(capability(std::numeric_limits<double>::quiet_NaN()) ==
        "run_answer: capability is not between 0 and 1");
}

TEST_CASE("codec: what a device says about its energy, and what a task asks of it, is within bounds") {
  const auto power = [](auto change) {
    RunAnswer answer{.run = RunId(1), .ready = true, .samples = SampleCount(1), .power = example_power()};
    change(*answer.power);
    return refusal(answer);
  };
  CHECK(power([](DevicePower&) {}) == "accepted");
  CHECK(power([](DevicePower& p) { p.hertz = p.volts = {}; }) ==
        "run_answer: power: there are 0 frequencies, expected 1 to 64");
  CHECK(power([](DevicePower& p) { p.hertz.resize(100'000, 1e9); }) ==
        "run_answer: hertz: the number of elements is above 64");
  CHECK(power([](DevicePower& p) { p.watts_lowest = std::numeric_limits<double>::quiet_NaN(); }) ==
        "run_answer: power: the power at the lowest frequency is nan, expected 1e-09 to 1e+06");
  const auto effort = [](Effort asked) {
    TrainRequest request = train_request();
    request.effort = asked;
    return refusal(request);
  };
  CHECK(effort({1e9, 1}) == "accepted");
  CHECK(effort({-1, 0}) == "train_request: hertz is not a finite number of at least 0");
  CHECK(effort({INFINITY, 0}) == "train_request: hertz is not a finite number of at least 0");
  CHECK(effort({0, 1.01}) == "train_request: kept is not between 0 and 1");
  CHECK(effort({0, NAN}) == "train_request: kept is not between 0 and 1");
  const auto joules = [](double value) {
    UpdateOffer offer = update_offer();
    offer.joules = value;
    return refusal(offer);
  };
  CHECK(joules(0) == "accepted");
  CHECK(joules(1e12) == "accepted");
  CHECK(joules(1.1e12) == "update_offer: joules is not between 0 and 10^12");
  CHECK(joules(-1) == "update_offer: joules is not between 0 and 10^12");
  CHECK(joules(NAN) == "update_offer: joules is not between 0 and 10^12");
}

TEST_CASE("codec: a welcome names at most 256 runs, each once and in ascending order") {
  const auto naming = [](const std::vector<RunId>& runs) { return refusal(Welcome{.runs = runs}); };
  std::vector<RunId> most;
  for (std::uint64_t i = 0; i < kMaxRunsInProgress; ++i) most.emplace_back(UINT64_MAX - 256 + i);
  const char* const bound = "welcome: runs are not in ascending order";
  CHECK(naming({}) == "accepted");
  CHECK(naming(most) == "accepted");
  CHECK(naming({RunId(1), RunId(1)}) == bound);
  CHECK(naming({RunId(2), RunId(1)}) == bound);
  most.emplace_back(UINT64_MAX);
  CHECK(naming(most) == "welcome: runs: the number of elements is above 256");
  // Field 6, packed: run 258 in eight bytes, little-endian.
  CHECK(encode(Welcome{.version = 0, .runs = {RunId(258)}}) ==
        std::string("\x32\x08\x02\x01\0\0\0\0\0\0", 10));
}

TEST_CASE("codec: the largest welcome fits what strangers may send each other") {
  Welcome largest{.version = UINT32_MAX,
                  .features = std::vector<std::string>(kMaxFeatures, std::string(kMaxFeatureText, 'f')),
                  .software = std::string(kMaxText, 's'),
                  .client = ClientId(UINT32_MAX),
                  .pending = true};
  for (std::uint64_t i = 0; i < kMaxRunsInProgress; ++i) largest.runs.emplace_back(UINT64_MAX - 256 + i);
  const std::string bytes = encode(largest);
  // 16 features of 64 bytes, 256 bytes of software and 256 runs of 8 bytes, each with its tags and lengths.
  CHECK(bytes.size() == 16 * 66 + 259 + 256 * 8 + 3 + 6 + 6 + 2);
  CHECK(bytes.size() <= kMaxHeaderUnauthorised);
  CHECK(received(largest));
}

TEST_CASE("codec: the time left is held between nothing and a year") {
  const auto sent = [](Duration left) {
    return std::get<TrainRequest>(
               *received(changed(train_request(), [&](TrainRequest& m) { m.time_left = left; })))
        .time_left;
  };
  CHECK(sent(Duration(-5)) == Duration(0));
  CHECK(sent(Duration::max()) == kMaxTimeLeft);
  // Field 5 (time_left_ns) above 366 days, appended: the last value counts.
  const std::string bytes = encode(train_request()) + "\x28\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  const auto result = decode(kTypeOf<TrainRequest>, bytes_of(bytes));
  REQUIRE_FALSE(result);
  CHECK(result.error().message == "train_request: time_left_ns is above 366 days");
}

TEST_CASE("codec: a coverage to train that the model does not hold is refused") {
  CHECK(refusal(changed(train_request(), [](TrainRequest& m) {
          m.coverage = Coverage::of({{1005, 1015}});
        })) == "train_request: coverage reaches beyond the model's");
  CHECK(refusal(changed(train_request(), [](TrainRequest& m) { m.coverage = {}; })) ==
        "train_request: coverage: the coverage is empty");
}

TEST_CASE("codec: a model in anything but plain float32 is refused") {
  CHECK(refusal(changed(train_request(), [](TrainRequest& m) { m.model = example_compressed_manifest(); })) ==
        "train_request: model: a model must be sent as plain float32");
  CHECK(refusal(changed(train_request(), [](TrainRequest& m) { m.model.raw_size = 12'000; })) ==
        "train_request: model: a model must be sent as plain float32");
}

TEST_CASE("codec: a codec of a later version is refused, also one that eight bits would take for ours") {
  // Field 3 (update) holds the manifest; its field 3 (codec), appended, counts.
  for (const auto& [codec, number] : {std::pair{"\x18\x08", "8"}, std::pair{"\x18\x80\x02", "256"}}) {
    const std::string manifest(codec);
    const std::string update = "\x1a" + std::string(1, static_cast<char>(manifest.size())) + manifest;
    const auto result = decode(kTypeOf<UpdateOffer>, bytes_of(encode(update_offer()) + update));
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::kUnsupported);
    CHECK(result.error().message ==
          "update_offer: update: codec " + std::string(number) + " is not known to this version");
  }
}

TEST_CASE("codec: a manifest that does not fit together is refused") {
  const auto offer = [](auto change) {
    return refusal(changed(update_offer(), [&](UpdateOffer& m) { change(m.update); }));
  };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(offer([](Manifest& m) { m.chunks.pop_back(); }), "makes 3 chunks, but 2 hashes are given"));
  CHECK(contains(offer([](Manifest& m) { m.payload_size = 12'004; }), "needs 12000 bytes of payload"));
  CHECK(
      contains(offer([](Manifest& m) { m.payload_size = ~std::uint64_t{0}; }), "at most 30000 are allowed"));
  CHECK(contains(offer([](Manifest& m) { m.payload_size = 0; }), "empty"));
  CHECK(contains(offer([](Manifest& m) { m.chunk_size = 0; }), "chunk_size 0"));
  CHECK(contains(offer([](Manifest& m) { m.chunk_size = 4098; }), "chunk_size 4098"));
  CHECK(contains(offer([](Manifest& m) { m.chunk_size = 8 << 20; }), "chunk_size 8388608"));
  CHECK(contains(offer([](Manifest& m) { m.coverage = {}; }), "coverage is empty"));
  CHECK(contains(offer([](Manifest& m) { m.codec = static_cast<Codec>(9); }), "codec 9"));
  CHECK(contains(offer([](Manifest& m) {
                   m.coverage = Coverage::of({{kMaxParameters - 1, kMaxParameters + 2999}});
                 }),
                 "reaches beyond"));
}

TEST_CASE(
    "A6 row 20: codec: a message inside another that claims more bytes than there are is refused unread") {
  // Field 3 with a length of 2^28 bytes and more; it contains a field that claims the same.
  const std::string inner("\x1a\xf7\xff\xff\xff\x01\x1a\xf7\xff\xff\xff\x01", 12);
  CHECK_FALSE(lengths_fit(std::as_bytes(std::span(inner))));
  for (const MessageType type : {kTypeOf<Hello>, kTypeOf<UpdateOffer>, kTypeOf<TrainRequest>})
    CHECK_FALSE(decode(type, std::as_bytes(std::span(inner))));
  // One byte too many in each kind of field; then the correct number.
  for (const std::string& field : {std::string("\x08\x80", 2),
                                   std::string("\x09"
                                               "1234567",
                                               8),
                                   std::string("\x0a\x04"
                                               "abc",
                                               5),
                                   std::string("\x0d"
                                               "123",
                                               4),
                                   std::string("\x0a\xff\xff\xff\xff\x0f", 6)})
    CHECK_FALSE(lengths_fit(std::as_bytes(std::span(field))));
  for (const std::string& field : {std::string("\x08\x80\x01", 3),
                                   std::string("\x09"
                                               "12345678",
                                               9),
                                   std::string("\x0a\x03"
                                               "abc",
                                               5),
                                   std::string("\x0d"
                                               "1234",
                                               5),
                                   std::string("\x0b\x0a\x01"
                                               "a\x0c",
                                               5),
                                   std::string()})
    CHECK(lengths_fit(std::as_bytes(std::span(field))));
  for (const Message& message : example_messages()) {
    const std::string bytes = encode(message);
    CHECK(lengths_fit(std::as_bytes(std::span(bytes))));
  }
}
