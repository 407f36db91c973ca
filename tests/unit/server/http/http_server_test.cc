#include "server/http/http_server.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "core/platform/files.h"
#include "server/http/request_reader.h"
#include "tests/support/http/http_client.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

using test::body_of;
using test::get;
using test::HttpClient;

constexpr std::size_t kBigPage = 32 << 20;

// Answers some paths; bodies are accepted up to kMostBody and sent back.
class Echo final : public HttpService {
 public:
  static constexpr std::size_t kMostBody = 1 << 20;

  std::variant<HttpAdmission, HttpResponse> admit(const HttpRequest& head) override {
    if (head.path() == "/closed") return HttpResponse{.status = 401, .body = "no\n"};
    return HttpAdmission{head.path() == "/echo" ? kMostBody : std::size_t{0}, head.path() != "/stranger"};
  }
  void serve(HttpRequest request, HttpAnswer answer) override {
    const std::string path = request.path();
    if (path == "/hello") return answer({.body = request.target + "\n"});
    if (path == "/big") return answer({.body = std::string(kBigPage, 'x')});
    if (path == "/echo") return answer({.body = request.body});
    if (path == "/peer")
      return answer({.body = request.peer.address + "|" +
                             (request.peer.user ? std::to_string(*request.peer.user) : "none") + "\n"});
    if (path == "/file") return answer({.file = file});
    if (path == "/wait") return waiting.set_value(answer);
    if (path == "/later") {
      std::thread([answer] { answer({.body = "at last\n"}); }).detach();
      return;
    }
    if (path == "/events")
      return answer({.content_type = "text/event-stream",
                     .stream = [this](std::shared_ptr<EventStream> stream) { events.set_value(stream); }});
    answer({.status = 404, .body = "nothing is here\n"});
  }

  std::filesystem::path file;
  std::promise<std::shared_ptr<EventStream>> events;
  std::promise<HttpAnswer> waiting;
};

// A server on a separate thread.
class Served {
 public:
  explicit Served(HttpOptions options = {}) {
    if (options.listen.index() == 0) options.listen = protocol::Address{"127.0.0.1", 0};
    auto listening = HttpServer::listen(io_, options, service_);
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
  Echo& service() { return *service_; }
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
  std::shared_ptr<Echo> service_ = std::make_shared<Echo>();
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

using fedge::test::count;

// The answer to a request over TLS, if the server's certificate is trusted for this host; else empty.
std::string tls_reply(std::uint16_t port, const std::filesystem::path& trusted, const std::string& host,
                      int newest) {
  namespace asio = boost::asio;
  boost::system::error_code error;
  asio::io_context io;
  asio::ssl::context context(asio::ssl::context::tls_client);
  SSL_CTX_set_max_proto_version(context.native_handle(), newest);
  context.load_verify_file(trusted.string());
  context.set_verify_mode(asio::ssl::verify_peer);
  asio::ssl::stream<asio::ip::tcp::socket> stream(io, context);
  stream.set_verify_callback(asio::ssl::host_name_verification(host));
  stream.next_layer().connect({asio::ip::make_address("127.0.0.1"), port});
  stream.handshake(asio::ssl::stream_base::client, error);
  if (error) return "";
  asio::write(stream, asio::buffer(std::string("GET /hello HTTP/1.0\r\n\r\n")), error);
  std::string all;
  asio::read(stream, asio::dynamic_buffer(all), error);
  return all;
}

}  // namespace

TEST_CASE("http server: a page comes with its length, unkept and of no other type") {
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

TEST_CASE("http server: a connection stays for the next request, and ends when the client wants it to") {
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

TEST_CASE("http server: an HTTP/1.0 client gets one answer and the end") {
  const Served served;
  HttpClient client(served.port());
  client.send("GET /hello HTTP/1.0\r\n\r\n");
  CHECK(body_of(client.read_to_end()) == "/hello\n");
}

TEST_CASE("http server: requests one behind the other are answered in their order") {
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

TEST_CASE("http server: what is not there, not allowed or no request is told apart") {
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
  CHECK(status("GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx") == "HTTP/1.1 413");
  CHECK(status("GET /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") ==
        "HTTP/1.1 411");
}

TEST_CASE("http server: a target without a path is refused, though nothing stands before its question mark") {
  const Served served;
  CHECK(served.reply("GET ?x HTTP/1.1\r\nHost: a\r\n\r\n").substr(0, 12) == "HTTP/1.1 400");
}

TEST_CASE("http server: a body cannot carry a request past the one in front of it") {
  const Served served;
  const std::string reply =
      served.reply("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n" + get("/hello?smuggled"));
  CHECK(count(reply, "HTTP/1.1 ") == 1);
  CHECK(reply.substr(0, 12) == "HTTP/1.1 413");
  CHECK(reply.find("smuggled") == std::string::npos);
}

TEST_CASE("http server: a head of 16 KiB is read, and of a longer one nothing is kept") {
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

TEST_CASE("http server: who sends a head too slowly, or nothing, or reads nothing, is cut off") {
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

TEST_CASE("http server: a head that keeps coming byte by byte is cut off all the same") {
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

TEST_CASE("http server: above its number of connections the one that was silent longest gives way") {
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

TEST_CASE("http server: hundreds of connections that say nothing do not keep the next one out") {
  Served served;
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 500; ++i) silent.push_back(std::make_unique<HttpClient>(served.port()));
  HttpClient honest(served.port());
  honest.send(get("/hello"));
  CHECK(body_of(honest.read_answer()) == "/hello\n");
  CHECK(served.connections() <= 64);
}

TEST_CASE("http server: an address that is taken is refused with its name") {
  const Served served;
  boost::asio::io_context io;
  const auto second = HttpServer::listen(io, {.listen = protocol::Address{"127.0.0.1", served.port()}},
                                         std::make_shared<Echo>());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kUnavailable);
  CHECK(second.error().message.find("127.0.0.1:" + std::to_string(served.port())) != std::string::npos);
}

TEST_CASE("http server: a body arrives whole, in pieces and before the next request") {
  Served served;
  HttpClient client(served.port());
  std::string body;
  for (int i = 0; body.size() < 700'000; ++i) body += std::to_string(i) + ",";
  const std::string head =
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  client.send(head + body.substr(0, 1000));
  client.send(body.substr(1000) + get("/hello?next"));
  CHECK(body_of(client.read_answer()) == body);
  CHECK(body_of(client.read_answer()) == "/hello?next\n");
}

TEST_CASE("http server: a body above the limit is refused from its length alone") {
  Served served;
  for (const std::string length : {"1048577", "18446744073709551615"}) {
    HttpClient client(served.port());
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + "\r\n\r\n");
    client.send_end();
    CHECK(client.read_to_end().substr(0, 12) == "HTTP/1.1 413");
  }
  HttpClient overflow(served.port());
  overflow.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n");
  overflow.send_end();
  CHECK(overflow.read_to_end().substr(0, 12) == "HTTP/1.1 400");
}

TEST_CASE("http server: a refused request's body is never read as the next request") {
  Served served;
  const std::string reply =
      served.reply("POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\n\r\n" + get("/hello?smuggled"));
  CHECK(count(reply, "HTTP/1.1 ") == 1);
  CHECK(reply.substr(0, 12) == "HTTP/1.1 401");
}

TEST_CASE("http server: a client that waits for permission to send its body gets it, or the refusal") {
  Served served;
  HttpClient client(served.port());
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  REQUIRE(client.hears_within(std::chrono::seconds(60)));
  client.send("abc");
  client.send_end();
  const std::string all = client.read_to_end();
  CHECK(all.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"));
  CHECK(all.ends_with("\r\n\r\nabc"));
  HttpClient refused(served.port());
  refused.send("POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  CHECK(refused.read_answer().substr(0, 12) == "HTTP/1.1 401");
}

TEST_CASE("http server: a body that does not come is not waited for longer than its time") {
  Served served({.timeout = std::chrono::milliseconds(300)});
  HttpClient client(served.port());
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
  CHECK(client.hears_within(std::chrono::seconds(30)));  // the end of the connection
  CHECK(client.read_to_end().empty());
}

TEST_CASE("http server: an answer from another thread, also later than the timeout of a head") {
  Served served;
  CHECK(body_of(served.reply(get("/later"))) == "at last\n");
}

TEST_CASE("http server: a file is sent whole, and one that is missing is an error") {
  const test::TemporaryDirectory directory;
  Served served;
  std::string content;
  for (int i = 0; content.size() < 900'000; ++i) content += std::to_string(i) + "\n";
  served.service().file = directory.path() / "model";
  REQUIRE(write_file_atomic(served.service().file, content));
  HttpClient client(served.port());
  client.send(get("/file"));
  CHECK(body_of(client.read_answer()) == content);
  client.send("HEAD /file HTTP/1.1\r\nHost: a\r\n\r\n" + get("/hello?after"));
  CHECK(count(client.read_answer(/*head=*/true), "Content-Length: " + std::to_string(content.size())) == 1);
  CHECK(body_of(client.read_answer()) == "/hello?after\n");
  served.service().file = directory.path() / "gone";
  client.send(get("/file"));
  CHECK(client.read_answer().substr(0, 12) == "HTTP/1.1 404");
}

TEST_CASE("http server: a Unix socket says who is at the other end, also with a long path") {
  const test::TemporaryDirectory directory;
  for (const std::string& name : {std::string("s"), std::string(150, 'd') + "/socket"}) {
    const std::filesystem::path path = directory.path() / name;
    std::filesystem::create_directories(path.parent_path());
    {
      const Served served({.listen = path});
      struct stat info {};
      REQUIRE(::stat(path.c_str(), &info) == 0);
      CHECK((info.st_mode & 0777) == 0600);
      HttpClient client(path);
      client.send(get("/peer"));
      CHECK(body_of(client.read_answer()) == "|" + std::to_string(::getuid()) + "\n");
    }
    CHECK_FALSE(std::filesystem::exists(path));
  }
}

TEST_CASE("http server: events arrive as they are sent, with heartbeats in between, until one side ends") {
  Served served({.heartbeat = std::chrono::milliseconds(50)});
  auto opened = served.service().events.get_future();
  HttpClient client(served.port());
  client.send(get("/events"));
  const auto stream = opened.get();
  CHECK(stream->send("data: 1\n\n"));
  CHECK(stream->send("data: 2\n\n"));
  std::string received;
  while (count(received, ": heartbeat") < 2) received += client.read_some();
  CHECK(received.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));
  CHECK(received.find("Content-Length") == std::string::npos);
  CHECK(received.find("data: 1\n\ndata: 2\n\n") != std::string::npos);
  stream->send("data: last\n\n");
  stream->end();
  client.send_end();
  CHECK(client.read_to_end().ends_with("data: last\n\n"));
}

TEST_CASE("http server: a watcher that hangs up, or falls behind, is forgotten") {
  Served served({.max_behind = 1 << 20});
  {
    auto opened = served.service().events.get_future();
    HttpClient client(served.port());
    client.send(get("/events"));
    const auto stream = opened.get();
    client.send_end();
    while (stream->is_open()) std::this_thread::yield();
    CHECK_FALSE(stream->send("data: 1\n\n"));
  }
  served.service().events = {};
  auto opened = served.service().events.get_future();
  HttpClient deaf(served.port());
  deaf.send(get("/events"));
  const auto stream = opened.get();
  const std::string much(64 << 10, 'x');
  std::size_t sent = 0;
  while (stream->send(much)) sent += much.size();
  CHECK(sent < (std::size_t{64} << 20));
  CHECK_FALSE(stream->is_open());
}

TEST_CASE("http server: a request that is being answered does not give way to strangers") {
  Served served({.max_connections = 4});
  auto opened = served.service().waiting.get_future();
  HttpClient asking(served.port());
  asking.send(get("/wait"));
  const HttpAnswer answer = opened.get();
  std::vector<std::unique_ptr<HttpClient>> strangers;
  for (int i = 0; i < 40; ++i) strangers.push_back(std::make_unique<HttpClient>(served.port()));
  HttpClient known(served.port());
  known.send(get("/hello"));
  CHECK(body_of(known.read_answer()) == "/hello\n");
  for (int i = 0; i < 40; ++i) strangers.push_back(std::make_unique<HttpClient>(served.port()));
  // Strangers give way before a sender whose request was admitted.
  known.send(get("/hello?again"));
  CHECK(body_of(known.read_answer()) == "/hello?again\n");
  answer({.body = "done\n"});
  CHECK(body_of(asking.read_answer()) == "done\n");
}

TEST_CASE("http server: whoever has only fetched an open page is a stranger all the same") {
  Served served({.max_connections = 4});
  HttpClient known(served.port());
  known.send(get("/hello"));
  CHECK(body_of(known.read_answer()) == "/hello\n");
  std::vector<std::unique_ptr<HttpClient>> strangers;
  for (int i = 0; i < 40; ++i) {
    strangers.push_back(std::make_unique<HttpClient>(served.port()));
    strangers.back()->send(get("/stranger"));
    CHECK_FALSE(strangers.back()->read_answer().empty());
  }
  known.send(get("/hello?again"));
  CHECK(body_of(known.read_answer()) == "/hello?again\n");
}

TEST_CASE("http server: a known sender whose body is still arriving does not give way to strangers") {
  Served served({.max_connections = 4});
  HttpClient sender(served.port());
  sender.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  REQUIRE(sender.hears_within(std::chrono::seconds(60)));
  std::vector<std::unique_ptr<HttpClient>> others;
  for (int i = 0; i < 40; ++i) {
    others.push_back(std::make_unique<HttpClient>(served.port()));
    others.back()->send(get("/hello"));
    CHECK_FALSE(others.back()->read_answer().empty());
  }
  sender.send("body");
  sender.send_end();
  CHECK(sender.read_to_end().ends_with("\r\n\r\nbody"));
}

TEST_CASE("http server: streams do not give way to further connections") {
  Served served({.max_connections = 2});
  auto opened = served.service().events.get_future();
  HttpClient watcher(served.port());
  watcher.send(get("/events"));
  const auto stream = opened.get();
  for (int i = 0; i < 5; ++i) {
    HttpClient other(served.port());
    other.send(get("/hello"));
    CHECK(body_of(other.read_answer()) == "/hello\n");
  }
  CHECK(stream->send("data: still\n\n"));
}

TEST_CASE("http server: TLS 1.3 with a certificate of its own, and nothing older") {
  const test::TemporaryDirectory directory;
  const HttpIdentityFiles files{directory.path() / "cert.pem", directory.path() / "key.pem"};
  REQUIRE(create_http_identity(files, {"localhost", "127.0.0.1", "fedge.example.org"}));
  struct stat info {};
  REQUIRE(::stat(files.key.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  const auto identity = load_http_identity(files);
  REQUIRE(identity);
  CHECK(fingerprint_of(**identity).size() == 64);
  const Served served({.identity = *identity});
  const auto reply = [&](const std::string& host, int newest = TLS1_3_VERSION) {
    return tls_reply(served.port(), files.certificate, host, newest);
  };
  CHECK(reply("fedge.example.org").starts_with("HTTP/1.1 200 OK"));
  CHECK(reply("127.0.0.1").starts_with("HTTP/1.1 200 OK"));
  CHECK(reply("other.example.org").empty());
  CHECK(reply("fedge.example.org", TLS1_2_VERSION).empty());
  HttpClient plain(served.port());
  plain.send(get("/hello"));
  CHECK(plain.read_to_end().find("HTTP/1.1") == std::string::npos);
}

TEST_CASE("http identity: files that are missing, open to others or of different keys are refused") {
  const test::TemporaryDirectory directory;
  const HttpIdentityFiles first{directory.path() / "a.pem", directory.path() / "a.key"};
  const HttpIdentityFiles second{directory.path() / "b.pem", directory.path() / "b.key"};
  REQUIRE(create_http_identity(first, {"localhost"}));
  REQUIRE(create_http_identity(second, {"localhost"}));
  const auto why = [](const HttpIdentityFiles& files) {
    const auto loaded = load_http_identity(files);
    return loaded ? std::string("accepted") : loaded.error().message;
  };
  CHECK(why(first) == "accepted");
  CHECK(why({first.certificate, second.key}).find("is not the private key in PEM of") != std::string::npos);
  CHECK(why({directory.path() / "none", first.key}).find("none is not a certificate in PEM") !=
        std::string::npos);
  CHECK(why({first.certificate, directory.path() / "none"}).find("cannot open") != std::string::npos);
  REQUIRE(::chmod(first.key.c_str(), 0640) == 0);
  CHECK(why(first).find("can be read by other users") != std::string::npos);
}

}  // namespace fedge::server
