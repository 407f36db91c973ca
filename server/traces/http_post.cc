#include "server/traces/http_post.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/platform/calendar.h"
#include "core/text.h"

namespace fedge::server {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using Fault = boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostAnswerBytes = 64 << 10;
constexpr std::size_t kMostPhrase = 64;  // bytes of a status line's text

std::vector<std::string> ask_system(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return {};
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.emplace_back(text);
  }
  ::freeaddrinfo(found);
  return addresses;
}

// A search for a host's addresses, shared with the thread that searches: it may outlive the HttpPost.
struct LookUp {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::vector<std::string> found;
};

}  // namespace

class HttpPost::Impl {
 public:
  Impl(TraceEndpoint endpoint, HttpPostOptions options)
      : endpoint_(std::move(endpoint)), options_(std::move(options)), socket_(io_) {
    if (!options_.look_up) options_.look_up = ask_system;
  }

  Result<Answer> send(const std::string& body) {
    until_ = Clock::now() + options_.timeout;
    FEDGE_TRY(endpoints, resolve());
    Fault fault = run([&](auto done) { asio::async_connect(socket_, endpoints, std::move(done)); });
    if (!fault) {
      const auto request = request_of(body);
      // A refusal may come before the whole body is sent, so an error in sending is not the last word.
      const Fault sent = run([&](auto done) { beast_http::async_write(socket_, request, std::move(done)); });
      if (sent == asio::error::timed_out) {
        fault = sent;
      } else {
        auto answer = read();
        if (answer) {
          close();
          return std::move(*answer);
        }
        fault = sent ? sent : read_fault_;
      }
    }
    close();
    return Error{ErrorCode::kUnavailable, "the collector at " + protocol::to_string(endpoint_.address) +
                                              " did not answer: " + fault.message()};
  }

  void end_by(Clock::time_point time) {
    limit_ = time.time_since_epoch().count();
    asio::post(io_, [] {});  // so that a step sees it
    const std::lock_guard lock(mutex_);
    if (!look_up_) return;
    const std::lock_guard waiting(look_up_->mutex);
    look_up_->changed.notify_all();
  }

 private:
  // When the request must have ended.
  Clock::time_point end() const { return std::min(until_, Clock::time_point(Clock::duration(limit_))); }

  // Runs one asynchronous step; `start` begins it with the handler that it is given.
  template <class Start>
  Fault run(Start start) {
    std::optional<Fault> outcome;
    io_.restart();
    start([&](const Fault& fault, auto&&...) { outcome = fault; });
    while (!outcome && Clock::now() < end()) {
      io_.run_one_until(end());
      if (!outcome && io_.stopped()) io_.restart();
    }
    if (outcome) return *outcome;
    close();
    io_.restart();
    while (!outcome && io_.run_one() > 0) continue;
    return asio::error::timed_out;
  }

  Result<std::vector<tcp::endpoint>> resolve() {
    const protocol::Address& address = endpoint_.address;
    std::vector<std::string> hosts = {address.host};
    Fault is_name;
    (void)asio::ip::make_address(address.host, is_name);
    if (is_name) hosts = look_up();
    std::vector<tcp::endpoint> endpoints;
    for (const std::string& host : hosts) {
      Fault wrong;
      const auto number = asio::ip::make_address(host, wrong);
      if (!wrong) endpoints.emplace_back(number, address.port);
    }
    if (endpoints.empty())
      return Error{ErrorCode::kUnavailable, "the host " + address.host + " of the collector was not found"};
    return endpoints;
  }

  // Returns null if the system permits no further thread.
  std::shared_ptr<LookUp> begin_look_up() const {
    auto search = std::make_shared<LookUp>();
    try {
      std::thread([search, ask = options_.look_up, host = endpoint_.address.host] {
        auto found = ask(host);
        const std::lock_guard lock(search->mutex);
        search->found = std::move(found);
        search->done = true;
        search->changed.notify_all();
      }).detach();
    } catch (const std::system_error&) {
      return nullptr;
    }
    return search;
  }

  // Waits for one search at a time: one that hangs is not joined by others.
  std::vector<std::string> look_up() {
    std::shared_ptr<LookUp> search;
    {
      const std::lock_guard lock(mutex_);
      if (!look_up_) look_up_ = begin_look_up();
      search = look_up_;
    }
    if (!search) return {};
    std::unique_lock lock(search->mutex);
    while (!search->done && Clock::now() < end()) search->changed.wait_until(lock, end());
    if (!search->done) return {};
    std::vector<std::string> found = std::move(search->found);
    lock.unlock();
    const std::lock_guard owned(mutex_);
    look_up_.reset();
    return found;
  }

  beast_http::request<beast_http::string_body> request_of(const std::string& body) const {
    beast_http::request<beast_http::string_body> request(beast_http::verb::post, endpoint_.target, 11);
    request.set(beast_http::field::host, protocol::to_string(endpoint_.address));
    request.set(beast_http::field::user_agent, "fedge-coordinator");
    request.set(beast_http::field::content_type, "application/json");
    request.set(beast_http::field::connection, "close");
    request.body() = body;
    request.prepare_payload();
    return request;
  }

  std::optional<Answer> read() {
    boost::beast::flat_buffer buffer(kMostAnswerBytes);
    beast_http::response_parser<beast_http::string_body> parser;
    parser.body_limit(kMostAnswerBytes);
    parser.header_limit(static_cast<std::uint32_t>(kMostAnswerBytes) / 4);
    read_fault_ = run([&](auto done) { beast_http::async_read(socket_, buffer, parser, std::move(done)); });
    if (read_fault_ && !parser.is_header_done()) return std::nullopt;
    // The status is enough, if the rest of the answer is too long or does not come.
    const auto& response = parser.get();
    const auto after = response[beast_http::field::retry_after];
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(calendar_time().time_since_epoch());
    return Answer{
        static_cast<int>(response.result_int()),
        clean_text(std::string_view(response.reason().data(), response.reason().size()), kMostPhrase),
        parse_retry_after(std::string(after), now), response.body()};
  }

  void close() {
    Fault ignored;
    socket_.close(ignored);
  }

  TraceEndpoint endpoint_;
  HttpPostOptions options_;
  asio::io_context io_;
  tcp::socket socket_;
  Fault read_fault_;
  Clock::time_point until_{};
  std::atomic<Clock::rep> limit_ = Clock::time_point::max().time_since_epoch().count();
  std::mutex mutex_;
  std::shared_ptr<LookUp> look_up_;  // the search in progress; null: none
};

HttpPost::HttpPost(TraceEndpoint endpoint, HttpPostOptions options)
    : impl_(std::make_shared<Impl>(std::move(endpoint), std::move(options))) {}
HttpPost::~HttpPost() = default;

Result<HttpPost::Answer> HttpPost::send(const std::string& body) { return impl_->send(body); }
void HttpPost::end_by(Clock::time_point time) { impl_->end_by(time); }

std::optional<std::chrono::seconds> parse_retry_after(const std::string& value, std::chrono::seconds now) {
  std::uint32_t count = 0;
  const char* last = value.data() + value.size();
  const auto [end, fault] = std::from_chars(value.data(), last, count);
  if (fault == std::errc() && end == last && !value.empty()) return std::chrono::seconds(count);
  std::tm date{};
  const char* rest = ::strptime(value.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  return std::max(std::chrono::seconds(0), std::chrono::seconds(::timegm(&date)) - now);
}

}  // namespace fedge::server
