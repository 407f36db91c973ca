#include "server/coordinator/detail/upload_turns.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <vector>

using namespace fedge;
using namespace fedge::server;

namespace {

struct Queue {
  explicit Queue(std::size_t at_once) : turns(std::make_shared<UploadTurns>(io, at_once)) {}
  void ask(unsigned client) {
    turns->ask(ClientId(client), [this, client] { begun.push_back(client); });
  }
  void leave(unsigned client) {
    turns->leave(ClientId(client));
    io.restart();
    io.poll();
  }
  boost::asio::io_context io;
  std::shared_ptr<UploadTurns> turns;
  std::vector<unsigned> begun;
};

using ClientNumbers = std::vector<unsigned>;

}  // namespace

TEST_CASE("upload turns: so many begin at once, the others when one ends, in the order they asked") {
  Queue queue(2);
  for (const unsigned client : {5U, 3U, 9U, 1U}) queue.ask(client);
  CHECK(queue.begun == ClientNumbers{5, 3});
  queue.leave(3);
  CHECK(queue.begun == ClientNumbers{5, 3, 9});
  queue.leave(9);
  queue.leave(5);
  CHECK(queue.begun == ClientNumbers{5, 3, 9, 1});
  queue.ask(2);
  CHECK(queue.begun.back() == 2);
}

TEST_CASE("upload turns: nobody begins from within the call that ended another's") {
  Queue queue(1);
  queue.ask(1);
  queue.ask(2);
  queue.turns->leave(ClientId(1));
  CHECK(queue.begun == ClientNumbers{1});
  queue.io.poll();
  CHECK(queue.begun == ClientNumbers{1, 2});
}

TEST_CASE("upload turns: who is no longer wanted is passed over, who asks again counts once") {
  Queue queue(1);
  for (const unsigned client : {1U, 2U, 3U, 4U}) queue.ask(client);
  queue.leave(2);
  queue.ask(4);  // it keeps its place
  queue.leave(2);
  queue.leave(7);  // never asked
  CHECK(queue.begun == ClientNumbers{1});
  queue.leave(1);
  CHECK(queue.begun == ClientNumbers{1, 3});
  queue.ask(2);
  queue.leave(3);
  queue.leave(4);
  CHECK(queue.begun == ClientNumbers{1, 3, 4, 2});
}

TEST_CASE("upload turns: one that begins anew waits for its turn like the others") {
  Queue queue(1);
  queue.ask(1);
  queue.ask(2);
  queue.ask(1);  // over a new link: its old upload has ended
  queue.io.poll();
  CHECK(queue.begun == ClientNumbers{1, 2});
  queue.leave(2);
  CHECK(queue.begun == ClientNumbers{1, 2, 1});
}

TEST_CASE("A6 row 53: upload turns: clients that send slowly or not at all keep nobody waiting for ever") {
  Queue queue(2);
  for (unsigned client = 0; client < 6; ++client) queue.ask(client);
  CHECK(queue.begun == ClientNumbers{0, 1});
  while (queue.begun.size() < 6) REQUIRE(queue.io.run_one() > 0);
  CHECK(queue.begun == ClientNumbers{0, 1, 2, 3, 4, 5});
}

TEST_CASE("upload turns: once stopped, nobody's turn comes") {
  Queue queue(1);
  queue.ask(1);
  queue.ask(2);
  queue.turns->stop();
  queue.leave(1);
  queue.io.run();
  CHECK(queue.begun == ClientNumbers{1});
}
