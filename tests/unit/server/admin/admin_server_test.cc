#include "server/admin/admin_server.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "server/admin/request_reader.h"
#include "tests/support/http_client.h"
#include "tests/support/text.h"

namespace fedge::server {
namespace {

using test::body_of;
using test::get;
using test::HttpClient;

constexpr std::size_t kBigPage = 32 << 20;

// An admin server on a separate thread.
class Served {
 public:
  explicit Served(AdminOptions options = {}) {
    options.listen = {"127.0.0.1", 0};
    HttpPages pages;
    pages["/hello"] = [](const HttpRequest& request) { return HttpResponse{.body = request.target + "\n"}; };
    pages["/big"] = [](const HttpRequest&) { return HttpResponse{.body = std::string(kBigPage, 'x')}; };
    auto listening = AdminServer::listen(io_, options, std::move(pages));
    REQUIRE_MESSAGE(listening, listening.error().message);
    server_ = std::move(*listening);
    port_ = server_->address().port;
    thread_ = std::thread([this] { io_.run(); });
  }
  // The thread ends only if the server leaves no pending work.
  ~Served() {
    boost::asio::post(io_, [this] { server_.reset(); });
    thread_.join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  std::uint16_t port() const { return port_; }
  std::size_t connections() {
    std::promise<std::size_t> count;
    boost::asio::post(io_, [&] { count.set_value(server_->connections()); });
    return count.get_future().get();
  }
  // Sends these bytes, closes the sending side and returns the whole answer.
  std::string reply(const std::string& bytes) const {
    HttpClient client(port_);
    client.send(bytes);
    client.send_end();
    return client.read_to_end();
  }

 private:
  boost::asio::io_context io_;
  std::unique_ptr<AdminServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

using fedge::test::count;

}  // namespace

TEST_CASE("admin server: a page comes with its length, unkept and of no other type") {
  const Served served;
  HttpClient client(served.port());
  client.send(get("/hello?x=1"));
  CHECK(client.read_answer() ==
        "HTTP/1.1 200 OK\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Length: 11\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: keep-alive\r\n\r\n"
        "/hello?x=1\n");
}

TEST_CASE("admin server: a connection stays for the next request, and ends when the client wants it to") {
  const Served served;
  HttpClient client(served.port());
  client.send(get("/hello?1"));
  CHECK(body_of(client.read_answer()) == "/hello?1\n");
  client.send("HEAD /hello?2 HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string head = client.read_answer(/*head=*/true);
  CHECK(head.find("Content-Length: 9\r\n") != std::string::npos);
  client.send("GET /hello?3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string last = client.read_to_end();
  CHECK(last.starts_with("HTTP/1.1 200"));  // the answer to HEAD had no body
  CHECK(last.find("Connection: close\r\n") != std::string::npos);
  CHECK(body_of(last) == "/hello?3\n");
}

TEST_CASE("admin server: an HTTP/1.0 client gets one answer and the end") {
  const Served served;
  HttpClient client(served.port());
  client.send("GET /hello HTTP/1.0\r\n\r\n");
  CHECK(body_of(client.read_to_end()) == "/hello\n");
}

TEST_CASE("admin server: requests one behind the other are answered in their order") {
  const Served served;
  std::string requests;
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    requests += get("/hello?" + std::to_string(i));
    expected += "/hello?" + std::to_string(i) + "\n";
  }
  HttpClient client(served.port());
  std::string bodies;
  client.send(requests);
  for (int i = 0; i < 300; ++i) bodies += body_of(client.read_answer());
  CHECK(bodies == expected);
}

TEST_CASE("admin server: what is not there, not allowed or no request is told apart") {
  const Served served;
  const auto status = [&](const std::string& bytes) { return served.reply(bytes).substr(0, 12); };
  CHECK(status(get("/other")) == "HTTP/1.1 404");
  CHECK(status(get("/hello/../hello")) == "HTTP/1.1 404");
  CHECK(status(get("/HELLO")) == "HTTP/1.1 404");
  CHECK(status("GET /hello HTTP/1.1\r\n\r\n") == "HTTP/1.1 400");
  CHECK(status("GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n") == "HTTP/1.1 400");
  CHECK(status("GET /hello HTTP/1.1\r\nHost : a\r\n\r\n") == "HTTP/1.1 400");
  CHECK(status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == "HTTP/1.1 505");
  CHECK(status("\x16\x03\x01\x02") == "HTTP/1.1 400");  // TLS
  CHECK(status(std::string("GET /hello HTTP/1.1\r\nHost: a\0b\r\n\r\n", 35)) == "HTTP/1.1 400");
  CHECK(status("GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx") == "HTTP/1.1 400");
  CHECK(status("GET /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") ==
        "HTTP/1.1 400");
  for (const std::string verb : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "BREW"}) {
    CAPTURE(verb);
    const std::string reply = served.reply(verb + " /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(reply.substr(0, 12) == "HTTP/1.1 405");
    CHECK(reply.find("\r\nAllow: GET, HEAD\r\n") != std::string::npos);
  }
}

TEST_CASE(
    "admin server: a target without a path is refused, though nothing stands before its question mark") {
  const Served served;
  CHECK(served.reply("GET ?x HTTP/1.1\r\nHost: a\r\n\r\n").substr(0, 12) == "HTTP/1.1 400");
}

TEST_CASE("admin server: a body cannot carry a request past the one in front of it") {
  const Served served;
  const std::string reply =
      served.reply("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n" + get("/hello?smuggled"));
  CHECK(count(reply, "HTTP/1.1 ") == 1);
  CHECK(reply.substr(0, 12) == "HTTP/1.1 400");
  CHECK(reply.find("smuggled") == std::string::npos);
}

TEST_CASE("admin server: a head of 16 KiB is read, and of a longer one nothing is kept") {
  const Served served;
  const std::string begin = "GET /hello HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string longest = begin + std::string(kMaxRequestHead - begin.size() - 4, 'x') + "\r\n\r\n";
  REQUIRE(longest.size() == 16384);
  CHECK(served.reply(longest).substr(0, 12) == "HTTP/1.1 200");
  CHECK(served.reply(begin + "x" + longest.substr(begin.size())).substr(0, 12) == "HTTP/1.1 431");
  HttpClient endless(served.port());
  endless.send(begin + std::string(8 << 20, 'x'));  // the server disconnects long before
  const std::string answer = endless.read_to_end();
  CHECK((answer.empty() || answer.substr(0, 12) == "HTTP/1.1 431"));
}

TEST_CASE("admin server: who sends a head too slowly, or nothing, or reads nothing, is cut off") {
  Served served({.timeout = std::chrono::milliseconds(1500)});
  HttpClient silent(served.port());
  HttpClient slow(served.port());
  slow.send("GET /hello HTTP/1.1\r\nHost");
  HttpClient idle(served.port());
  idle.send(get("/hello"));
  CHECK(body_of(idle.read_answer()) == "/hello\n");
  HttpClient deaf(served.port());
  deaf.send(get("/big"));
  CHECK(silent.read_to_end().empty());
  CHECK(slow.read_to_end().empty());
  CHECK(idle.read_to_end().empty());
  while (served.connections() > 0) std::this_thread::yield();
  CHECK(deaf.read_to_end().size() < kBigPage);
}

TEST_CASE("admin server: a head that keeps coming byte by byte is cut off all the same") {
  Served served({.timeout = std::chrono::milliseconds(20)});
  HttpClient slow(served.port());
  slow.send("GET /hello HTTP/1.1\r\nX: ");
  // A byte a millisecond: the timeout strikes long before the size limit, also on a machine whose timers are
  // late.
  std::size_t sent = 0;
  constexpr std::size_t kEnough = 16'000;
  while (sent < kEnough && !slow.hears_within(std::chrono::milliseconds(1)) && slow.send("x")) ++sent;
  CHECK(sent < kEnough);
  CHECK(slow.read_to_end().empty());
}

TEST_CASE("admin server: above its number of connections the one that was silent longest gives way") {
  Served served({.max_connections = 4});
  std::vector<std::unique_ptr<HttpClient>> clients;
  const auto connect = [&] {
    clients.push_back(std::make_unique<HttpClient>(served.port()));
    clients.back()->send(get("/hello"));
    CHECK_FALSE(clients.back()->read_answer().empty());
  };
  for (int i = 0; i < 4; ++i) connect();
  clients[0]->send(get("/hello?again"));
  CHECK(body_of(clients[0]->read_answer()) == "/hello?again\n");
  connect();
  CHECK(served.connections() == 4);
  CHECK(clients[1]->read_to_end().empty());
  clients[0]->send(get("/hello?still"));
  CHECK(body_of(clients[0]->read_answer()) == "/hello?still\n");
}

TEST_CASE("admin server: hundreds of connections that say nothing do not keep the next one out") {
  Served served;
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 500; ++i) silent.push_back(std::make_unique<HttpClient>(served.port()));
  HttpClient honest(served.port());
  honest.send(get("/hello"));
  CHECK(body_of(honest.read_answer()) == "/hello\n");
  CHECK(served.connections() <= 64);
}

TEST_CASE("admin server: an address that is taken is refused with its name") {
  const Served served;
  boost::asio::io_context io;
  const auto second = AdminServer::listen(io, {.listen = {"127.0.0.1", served.port()}}, {});
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kUnavailable);
  CHECK(second.error().message.find("127.0.0.1:" + std::to_string(served.port())) != std::string::npos);
}

}  // namespace fedge::server
