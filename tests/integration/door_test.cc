// What knocks at a coordinator's port, and how often.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "tests/integration/hostile_peer.h"

using namespace fedge;
using namespace fedge::test;
using boost::asio::ip::tcp;

namespace {

// Sends this from this address, and waits until it has been cut off.
void knock(Federation& f, const std::string& source, const std::string& text) {
  tcp::socket socket(f.io);
  socket.open(tcp::v4());
  socket.bind({boost::asio::ip::make_address(source), 0});
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), f.coordinator->address().port});
  boost::asio::write(socket, boost::asio::buffer(text));
  socket.non_blocking(true);
  f.run_until([&] {
    char buffer[512];
    boost::system::error_code error;
    socket.read_some(boost::asio::buffer(buffer), error);
    return error && error != boost::asio::error::would_block;
  });
}

}  // namespace

TEST_CASE("A6 row 34: other protocols on the port are one line an address in the log, and the run goes on") {
  Federation f(1, {});
  for (int i = 0; i < 5; ++i) {
    knock(f, "127.0.0.2", "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    knock(f, "127.0.0.3", "SSH-2.0-OpenSSH_9.2\r\n");
  }
  CHECK(f.count("client.refused") == 2);
  CHECK(f.count("client.refused address=\"127.0.0.2:") == 1);
  f.add_client();
  f.run_to_the_end();
}

TEST_CASE("A6 row 57: a client that connects 16 times without a pause is told to wait, others are let in") {
  Federation f(2, {});
  HostilePeer storm(f);
  storm.join(f.token());
  for (int i = 2; i <= 16; ++i) {
    storm.greet("");
    REQUIRE(*storm.answer);
  }
  storm.greet("");
  REQUIRE(!*storm.answer);
  CHECK(storm.answer->error().code == ErrorCode::kResource);
  CHECK(storm.answer->error().message ==
        "the coordinator refused: this client connects too often; wait a few seconds");
  CHECK(f.reported("connects too often"));
  HostilePeer other(f);
  other.join(f.token());
  CHECK(*other.answer);
}
