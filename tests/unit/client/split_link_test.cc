// The client's side of split training: parts under credit, lost connections, and coordinators that answer
// wrongly.
#include "client/device/split_link.h"

#include <doctest/doctest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace fedge::client {
namespace {

using protocol::SplitKind;
using protocol::SplitValues;

constexpr RunId kSplitRunId(7);
constexpr RoundNumber kSplitTaskRound(4);
constexpr std::size_t kPieceLength = 4;

// A coordinator that answers on the io_context's thread: with the negative of each byte, unless the test says
// otherwise.
class SplitCoordinator {
 public:
  SplitCoordinator() : work_(io.get_executor()), thread_([this] { io.run(); }) {
    link = std::make_shared<SplitLink>(io, [this](const protocol::Message& message) { sent(message); });
  }
  ~SplitCoordinator() {
    work_.reset();
    io.stop();
    thread_.join();
  }
  SplitCoordinator(const SplitCoordinator&) = delete;
  SplitCoordinator& operator=(const SplitCoordinator&) = delete;

  RemotePeer peer(std::stop_token stop = {}) {
    protocol::TrainRequest request;
    request.run = kSplitRunId;
    request.round = kSplitTaskRound;
    request.coverage = Coverage::all(kPieceLength);
    return {link, request, std::move(stop)};
  }
  // The client hears this.
  void say(const protocol::Message& message) {
    protocol::post(io, [this, message] { CHECK(link->received(message)); });
  }
  // The connection breaks: what is on its way is lost. Then the client is assigned the task again, or one of
  // this many parameters by a coordinator that has lost it.
  void assign_again(RoundNumber round = kSplitTaskRound, std::size_t anew = 0) {
    down_ = true;
    protocol::post(io, [this, round, anew] {
      down_ = false;
      protocol::TrainRequest request;
      request.run = kSplitRunId;
      request.round = round;
      request.again = anew == 0;
      request.coverage = Coverage::all(anew > 0 ? anew : kPieceLength);
      incoming = protocol::SplitIncoming(1 << 24);
      unanswered = 0;
      CHECK_FALSE(link->received(request));
    });
  }
  void answer(const SplitValues& asked) {
    SplitValues head{.run = asked.run,
                     .round = asked.round,
                     .kind = SplitKind::kGradients,
                     .step = asked.step,
                     .first = asked.first};
    head.losses.assign(asked.sent.size(), 0.5);
    std::vector<std::byte> values = asked.values;
    for (std::byte& value : values) value = ~value;
    outgoing = protocol::SplitOutgoing(head, std::move(values));
    send_parts();
  }
  void send_parts() {
    while (const auto part = outgoing.next()) say(*part);
  }

  boost::asio::io_context io;
  std::shared_ptr<SplitLink> link;
  // Gets a whole message; null: answer(). Returns whether to answer it.
  std::function<bool(const SplitValues&)> on_values;
  std::function<bool(const protocol::SplitEnded&)> on_end;
  std::function<bool(const SplitValues&)> takes_part;  // null: all
  std::size_t most_unanswered = 0;
  std::size_t unanswered = 0;  // parts

 private:
  void sent(const protocol::Message& message) {
    if (down_) return;
    if (const auto* part = std::get_if<SplitValues>(&message)) {
      if (takes_part && !takes_part(*part)) return;
      most_unanswered = std::max(most_unanswered, ++unanswered);
      const auto whole = incoming.take(*part);
      REQUIRE(whole);
      --unanswered;
      if (!*whole) return say(protocol::SplitTaken{part->run, part->round, part->part});
      if (!on_values || on_values(**whole)) answer(**whole);
    } else if (const auto* taken = std::get_if<protocol::SplitTaken>(&message)) {
      outgoing.taken(taken->part);
      send_parts();
    } else if (const auto* end = std::get_if<protocol::SplitEnded>(&message)) {
      if (!on_end || on_end(*end)) say(protocol::SplitKept{end->run, end->round});
    }
  }

  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  protocol::SplitIncoming incoming{1 << 24};
  protocol::SplitOutgoing outgoing;
  bool down_ = false;  // the connection
  std::thread thread_;
};

struct SplitPieceOf {
  explicit SplitPieceOf(std::size_t bytes) : values(bytes) {
    for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::byte>(i * 7 + i / 256);
    piece = {.step = 3,
             .last = true,
             .place = {.cut = 1, .first = 0, .rows = 2 * kPieceLength, .length = kPieceLength},
             .sent = {sent, kPieceLength},
             .targets = targets,
             .total = 5};
  }
  std::vector<std::uint32_t> sent = {4, 2};
  std::vector<learn::Token> targets = {1, 2, learn::kNoToken, 4, 5, 6, learn::kNoToken, learn::kNoToken};
  std::vector<std::byte> values;
  std::vector<double> losses = {0, 0};
  learn::ExchangedPiece piece;
};

Result<void> exchange(RemotePeer& peer, SplitPieceOf& piece) {
  return peer.exchange(piece.piece, piece.values, piece.losses);
}

std::string failure(SplitCoordinator& coordinator) {
  RemotePeer peer = coordinator.peer();
  REQUIRE(peer.begin({kSplitTaskRound, 1, 9}));
  SplitPieceOf piece(64);
  const auto done = exchange(peer, piece);
  return done ? "accepted" : std::string(to_string(done.error().code)) + ": " + done.error().message;
}

}  // namespace

TEST_CASE("split link: values and losses come back, and the coordinator hears what it must") {
  SplitCoordinator coordinator;
  std::promise<SplitValues> heard;
  coordinator.on_values = [&](const SplitValues& message) {
    heard.set_value(message);
    return true;
  };
  RemotePeer peer = coordinator.peer();
  REQUIRE(peer.begin({kSplitTaskRound, 1, 9}));
  SplitPieceOf piece(64);
  const auto before = piece.values;
  REQUIRE(exchange(peer, piece));
  for (std::size_t i = 0; i < 64; ++i) CHECK(piece.values[i] == ~before[i]);
  CHECK(piece.losses == std::vector<double>{0.5, 0.5});
  const SplitValues message = heard.get_future().get();
  CHECK(message.kind == SplitKind::kActivations);
  CHECK(message.step == 3);
  CHECK(message.steps == 9);
  CHECK(message.total == 5);
  CHECK(message.last);
  CHECK(message.sent == piece.sent);
  CHECK(message.targets == std::vector<std::uint32_t>{2, 3, 0, 5, 6, 7});
  CHECK(peer.end(9));
}

TEST_CASE("split link: many bytes travel in parts, of which two are under way at most") {
  SplitCoordinator coordinator;
  std::size_t parts = 0;
  coordinator.takes_part = [&](const SplitValues& part) {
    ++parts;
    CHECK(part.values.size() <= protocol::kMaxSplitPart);
    CHECK((part.part == 0) == !part.sent.empty());
    return true;
  };
  RemotePeer peer = coordinator.peer();
  REQUIRE(peer.begin({kSplitTaskRound, 1, 9}));
  SplitPieceOf piece(5 * protocol::kMaxSplitPart + 12);
  const auto before = piece.values;
  REQUIRE(exchange(peer, piece));
  CHECK(parts == 6);
  CHECK(piece.values.size() == before.size());
  bool all = true;
  for (std::size_t i = 0; i < before.size(); ++i) all = all && piece.values[i] == ~before[i];
  CHECK(all);

  // Without an answer only two are sent.
  SplitCoordinator silent;
  std::promise<void> second;
  std::size_t sent = 0;
  silent.takes_part = [&](const SplitValues&) {
    if (++sent == 2) second.set_value();
    return false;
  };
  std::stop_source stop;
  std::thread trainer([&] {
    RemotePeer other = silent.peer(stop.get_token());
    SplitPieceOf large(5 * protocol::kMaxSplitPart);
    CHECK_FALSE(exchange(other, large));
  });
  second.get_future().wait();
  stop.request_stop();
  trainer.join();
  CHECK(sent == 2);
}

TEST_CASE("split link: a lost connection costs a message, which is sent again once the task is") {
  SplitCoordinator coordinator;
  int lost = 0;
  coordinator.takes_part = [&](const SplitValues& part) {
    // The connection breaks at the second part, twice.
    if (part.part != 1 || lost == 2) return true;
    ++lost;
    coordinator.assign_again();
    return false;
  };
  RemotePeer peer = coordinator.peer();
  SplitPieceOf piece(3 * protocol::kMaxSplitPart);
  const auto before = piece.values;
  REQUIRE(exchange(peer, piece));
  CHECK(lost == 2);
  CHECK(piece.values[5] == ~before[5]);
  // Another task that is assigned again is none of its business.
  // Neither is one of the same round with other parameters.
  for (const auto& [round, count] :
       {std::pair{RoundNumber(9), std::size_t{0}}, std::pair{kSplitTaskRound, kPieceLength + 1}}) {
    int heard = 0;
    coordinator.on_values = [&, round = round, count = count](const SplitValues&) {
      if (++heard == 1) coordinator.assign_again(round, count);
      return true;
    };
    CHECK(exchange(peer, piece));
    CHECK(heard == 1);
  }
  // A coordinator that was killed before it had noted the round assigns the same task as a new one.
  bool killed = false;
  coordinator.on_values = [&](const SplitValues& asked) {
    if (asked.step != 3 || std::exchange(killed, true)) return true;
    coordinator.assign_again(kSplitTaskRound, kPieceLength);
    return false;
  };
  CHECK(exchange(peer, piece));
  CHECK(killed);
  // The end of the training likewise.
  int ends = 0;
  coordinator.on_end = [&](const protocol::SplitEnded& end) {
    CHECK(end.steps == 4);
    if (++ends < 3) coordinator.assign_again();
    return ends == 3;
  };
  CHECK(peer.end(4));
  CHECK(ends == 3);
}

TEST_CASE("split link: an answer that comes twice, or to another task or message, is none") {
  SplitCoordinator coordinator;
  coordinator.on_values = [&](const SplitValues& asked) {
    SplitValues other = asked;
    other.kind = SplitKind::kGradients;
    other.sent = {};
    other.targets = {};
    other.round = RoundNumber(5);
    coordinator.say(other);
    other.round = asked.round;
    other.step = 2;
    coordinator.say(other);
    coordinator.say(protocol::SplitKept{asked.run, RoundNumber(5)});
    coordinator.say(protocol::SplitRefused{asked.run, RoundNumber(5), ErrorCode::kInvalid, "an old one"});
    coordinator.answer(asked);
    coordinator.answer(asked);
    return false;
  };
  RemotePeer peer = coordinator.peer();
  for (int step = 0; step < 3; ++step) {
    SplitPieceOf piece(64);
    const auto before = piece.values;
    REQUIRE(exchange(peer, piece));
    CHECK(piece.values[9] == ~before[9]);
  }
}

TEST_CASE("split link: a refusal ends the exchange with its code, and says that it is the coordinator's") {
  for (const ErrorCode code : {ErrorCode::kStale, ErrorCode::kInvalid, ErrorCode::kNotFound}) {
    SplitCoordinator coordinator;
    coordinator.on_values = [&](const SplitValues& asked) {
      coordinator.say(protocol::SplitRefused{asked.run, asked.round, code, "there is no room"});
      return false;
    };
    CHECK(failure(coordinator) ==
          std::string(to_string(code)) +
              ": the coordinator cannot use what this client sent for its half: there is "
              "no room");
  }
}

TEST_CASE("split link: answers of another kind, number or size are errors") {
  const auto with = [](const std::function<void(SplitValues&)>& change) {
    SplitCoordinator coordinator;
    coordinator.on_values = [&](const SplitValues& asked) {
      SplitValues answer = asked;
      answer.kind = SplitKind::kGradients;
      answer.losses.assign(asked.sent.size(), 1);
      change(answer);
      coordinator.say(answer);
      return false;
    };
    return failure(coordinator);
  };
  CHECK(with([](SplitValues&) {}) == "accepted");
  const std::string other =
      "INVALID: the coordinator's answer for its half of the model is not what this client asked for";
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  CHECK(lower(with([](SplitValues& a) { a.kind = SplitKind::kOutputs; })) == lower(other));
  CHECK(lower(with([](SplitValues& a) { a.losses.pop_back(); })) == lower(other));
  CHECK(with([](SplitValues& a) { a.values.emplace_back(); }).find("more bytes than the 64") !=
        std::string::npos);
  CHECK(with([](SplitValues& a) {
          a.part = 1, a.parts = 2;
        }).find("part 1 of values came in place of part 0") != std::string::npos);
}

TEST_CASE("split link: an abandoned task ends every wait") {
  SplitCoordinator coordinator;
  coordinator.on_values = [](const SplitValues&) { return false; };
  std::stop_source stop;
  std::promise<std::string> ended;
  std::thread trainer([&] {
    RemotePeer peer = coordinator.peer(stop.get_token());
    SplitPieceOf piece(64);
    ended.set_value(exchange(peer, piece).error().message);
  });
  stop.request_stop();
  CHECK(ended.get_future().get() == "the task was cancelled");
  trainer.join();
}

}  // namespace fedge::client
