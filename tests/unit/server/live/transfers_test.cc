// What is counted of uploads and downloads, and when they are listed.
#include "server/live/transfers.h"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace fedge::server {
namespace {

// The transfers of run 3, on a clock that the test moves.
struct Board {
  Transfers::Clock::time_point now{};
  std::shared_ptr<Transfers> all = std::make_shared<Transfers>([this] { return now; });
  RunTransfers run{all, RunNumber(3), "cardiology"};

  std::shared_ptr<Transfer> open(std::uint32_t client, TransferObject object = TransferObject::kUpdate,
                                 std::uint64_t bytes = 1000) {
    return run.open(ClientId(client), {RoundNumber(4), {}}, object, bytes);
  }
  std::vector<Transfers::Listed> list(std::uint64_t after = 0, std::size_t most = 1000) const {
    return all->list(after, most, [](const TransferFacts&) { return true; });
  }
  // The bytes of the only transfer.
  std::uint64_t done() const {
    const auto one = list();
    REQUIRE(one.size() == 1);
    return one.front().done;
  }
  void pass(double seconds) {
    for (int i = 0; i < static_cast<int>(seconds); ++i) {
      now += std::chrono::seconds(1);
      all->look();
    }
  }
};

}  // namespace

TEST_CASE("transfers: an upload is listed while it waits and moves, and no longer when it ends") {
  Board board;
  const auto upload = board.open(7);
  CHECK(board.list().empty());  // it neither waits nor moves yet
  upload->wait(TransferWait::kTurn);
  REQUIRE(board.list().size() == 1);
  const Transfers::Listed waiting = board.list().front();
  CHECK(waiting.facts.run == RunNumber(3));
  CHECK(waiting.facts.project == "cardiology");
  CHECK(waiting.facts.client == ClientId(7));
  CHECK(waiting.facts.task == TaskId{RoundNumber(4), {}});
  CHECK(waiting.facts.bytes == 1000);
  CHECK(waiting.wait == TransferWait::kTurn);
  CHECK(waiting.since > 0);
  board.pass(30);
  CHECK_FALSE(board.list().front().rate);
  upload->move(200);  // so much arrived before a disconnect
  upload->add(300);
  CHECK(board.done() == 500);
  CHECK(board.list().front().number == waiting.number);
  CHECK(board.list().front().wait == TransferWait::kNone);
  upload->wait(TransferWait::kDisk);
  CHECK(board.list().front().wait == TransferWait::kDisk);
  CHECK(board.done() == 500);
  board.run.end(ClientId(7), TransferObject::kUpdate);
  CHECK(board.list().empty());
}

TEST_CASE(
    "transfers: after its end, a transfer that somebody still holds is not listed and counts for nobody") {
  Board board;
  const auto old = board.open(7);
  old->move();
  old->end();
  old->add(100);
  old->requested();
  old->wait(TransferWait::kTurn);
  CHECK(board.list().empty());
  board.open(7)->move();
  old->add(100);
  old->sent(1000);
  CHECK(board.done() == 0);
}

TEST_CASE("transfers: a client has one transfer of each object in a run, and none after it disconnects") {
  Board board;
  std::vector<std::shared_ptr<Transfer>> held;
  for (int attempt = 0; attempt < 100; ++attempt) {
    for (const auto object : {TransferObject::kModel, TransferObject::kControl, TransferObject::kUpdate}) {
      held.push_back(board.open(7, object));  // a link may still have it
      held.back()->move();
    }
    CHECK(board.list().size() == 3);
  }
  board.open(6)->move();
  board.open(8)->wait(TransferWait::kTurn);
  board.run.end(ClientId(7));
  REQUIRE(board.list().size() == 2);
  CHECK(board.list()[0].facts.client == ClientId(6));
  CHECK(board.list()[1].facts.client == ClientId(8));
  CHECK_FALSE(board.run.find(ClientId(7), TransferObject::kUpdate));
  // Another run's are not touched when this one ends.
  RunTransfers other(board.all, RunNumber(9), "oncology");
  other.open(ClientId(7), {RoundNumber(1), {}}, TransferObject::kUpdate, 5)->move();
  board.run.end_all();
  REQUIRE(board.list().size() == 1);
  CHECK(board.list().front().facts.run == RunNumber(9));
}

TEST_CASE("transfers: the bytes never exceed the size and never decrease, whatever is counted") {
  Board board;
  const auto download = board.open(7, TransferObject::kModel);
  download->requested();
  download->sent(400);
  download->requested();
  download->sent(100);  // a chunk that was sent before
  CHECK(board.done() == 400);
  for (int i = 0; i < 1000; ++i) {
    download->requested();
    download->sent(400);
  }
  CHECK(board.done() == 400);
  const auto upload = board.open(8);
  upload->move(900);
  upload->add(900);
  upload->add(UINT64_MAX);
  CHECK(board.list().back().done == 1000);
  download->sent(5000);  // the last chunk is shorter than the others
  CHECK(board.list().size() == 1);
}

TEST_CASE("transfers: a download begins with its first request and ends with its last chunk, for good") {
  Board board;
  const auto download = board.open(7, TransferObject::kModel);
  board.pass(10);
  CHECK(board.list().empty());  // the client may have the model
  download->requested();
  CHECK(board.done() == 0);
  download->sent(1000);
  CHECK(board.list().empty());
  download->requested();  // a client that asks for it again
  download->sent(500);
  CHECK(board.list().empty());
}

TEST_CASE("transfers: a download without requests is over, unless a chunk of it is still being written") {
  Board board;
  const auto download = board.open(7, TransferObject::kModel);
  download->requested();
  board.pass(10'000);  // the client reads nothing
  CHECK(board.list().size() == 1);
  const std::uint64_t number = board.list().front().number;
  download->sent(600);  // it has the rest, or needs no more
  board.pass(59);
  CHECK(board.list().size() == 1);
  board.pass(2);
  CHECK(board.list().empty());
  download->requested();
  CHECK(board.done() == 600);
  CHECK(board.list().front().number > number);
  download->refused();
  board.pass(61);
  CHECK(board.list().empty());
  // An upload has an end of its own, however slow it is.
  board.open(8)->move();
  board.pass(1000);
  CHECK(board.list().size() == 1);
}

TEST_CASE("transfers: the rate is that of the last seconds, and nothing at the beginning") {
  Board board;
  const auto upload = board.open(7, TransferObject::kUpdate, 1'000'000);
  upload->move(500);  // these were here before
  upload->add(700);
  CHECK_FALSE(board.list().front().rate);
  board.pass(2);
  REQUIRE(board.list().front().rate);
  CHECK(*board.list().front().rate == 350);
  for (int i = 0; i < 100; ++i) {
    upload->add(1000);
    board.pass(1);
  }
  CHECK(*board.list().front().rate == 1000);
  board.pass(11);
  CHECK(*board.list().front().rate == 0);
}

TEST_CASE("transfers: pages are ascending, complete, and only of what fits") {
  Board board;
  for (std::uint32_t client = 0; client < 10; ++client) board.open(client)->move();
  board.run.end(ClientId(4));
  std::vector<std::uint32_t> seen;
  std::uint64_t after = 0;
  while (true) {
    const auto page =
        board.all->list(after, 3, [](const TransferFacts& facts) { return facts.client != ClientId(5); });
    if (page.empty()) break;
    CHECK(page.size() <= 3);
    for (const auto& one : page) seen.push_back(one.facts.client.value());
    after = page.back().number;
  }
  CHECK(seen == std::vector<std::uint32_t>{0, 1, 2, 3, 6, 7, 8, 9});
}

}  // namespace fedge::server
