#include "server/http/detail/http_connection.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <mutex>
#include <span>
#include <utility>

namespace fedge::server {
namespace {

namespace asio = boost::asio;

// Bytes that a peer may still send after its last answer: closing the socket at once could discard the
// answer.
constexpr std::size_t kMaxLeftOver = 8 << 20;
constexpr std::size_t kFilePiece = 256 << 10;
constexpr const char* kHeartbeat = ": heartbeat\n\n";

HttpResponse refusal(const Error& error) {
  const int status = error.code == ErrorCode::kResource      ? 431
                     : error.code == ErrorCode::kUnsupported ? 505
                     : error.code == ErrorCode::kRefused     ? 411
                                                             : 400;
  return {.status = status, .body = error.message + "\n"};
}

}  // namespace

// The queue between the threads that send events and the connection.
class HttpEventStream final : public EventStream {
 public:
  HttpEventStream(asio::io_context& io, std::size_t most, std::weak_ptr<HttpConnection> connection,
                  void (HttpConnection::*on_queued)())
      : io_(io), most_(most), connection_(std::move(connection)), wake_(on_queued) {}

  bool send(std::string events) override {
    const std::lock_guard lock(mutex_);
    if (!open_) return false;
    queued_ += events;
    if (queued_.size() > most_) open_ = false;
    wake();
    return open_;
  }
  bool is_open() const override {
    const std::lock_guard lock(mutex_);
    return open_;
  }
  void end() override {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    wake();
  }

  // ---- for the connection ----
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  struct Queued {
    std::string bytes;
    bool ends = false;
  };
  Queued take() {
    const std::lock_guard lock(mutex_);
    woken_ = false;
    return {std::exchange(queued_, {}), ending_ || !open_};
  }

 private:
  // Posts, because the caller may be on another thread.
  void wake() {
    if (std::exchange(woken_, true)) return;
    protocol::post(io_, [connection = connection_, wake = wake_] {
      if (const auto alive = connection.lock()) (alive.get()->*wake)();
    });
  }

  asio::io_context& io_;
  std::size_t most_;
  std::weak_ptr<HttpConnection> connection_;
  void (HttpConnection::*wake_)();
  mutable std::mutex mutex_;
  std::string queued_;
  bool woken_ = false;  // wake() was posted and take() not yet called
  bool ending_ = false;
  bool open_ = true;
};

HttpConnection::HttpConnection(House house, std::unique_ptr<HttpSocket> socket, HttpPeer peer)
    : house_(std::move(house)), socket_(std::move(socket)), peer_(std::move(peer)), timer_(house_.io) {}

void HttpConnection::start() {
  arm_timer();
  socket_->handshake([self = shared_from_this()](const ErrorValue& error, std::size_t) {
    if (error || !self->is_open()) return self->close();
    self->read(&HttpConnection::next_request);
  });
}

void HttpConnection::close() {
  if (stream_) stream_->close();
  socket_->close();
  timer_.cancel();
}

void HttpConnection::arm_timer() {
  timer_.after(house_.options.timeout, protocol::weakly(this, [this] { close(); }));
}

void HttpConnection::read(void (HttpConnection::*then)()) {
  socket_->read_some(asio::buffer(piece_),
                     [self = shared_from_this(), then](const ErrorValue& error, std::size_t size) {
                       if (error || !self->is_open()) return self->close();
                       self->pending_.append(self->piece_.data(), size);
                       (self.get()->*then)();
                     });
}

void HttpConnection::next_request() {
  const auto size = reader_.take(pending_);
  if (!size) {
    head_only_ = false;
    return send(refusal(size.error()), false);
  }
  if (*size == 0) {
    // The pause between two requests does not count for the second.
    if (!pending_.empty() && !std::exchange(begun_, true)) arm_timer();
    return read(&HttpConnection::next_request);
  }
  begun_ = false;
  pending_.erase(0, *size);
  heard_ = std::chrono::steady_clock::now();
  request_ = reader_.request();
  request_.peer = peer_;
  head_only_ = request_.method == "HEAD";
  auto admitted = house_.service->admit(request_);
  // After a refusal the body is not read, so the next request could not be found.
  if (auto* refused = std::get_if<HttpResponse>(&admitted))
    return send(std::move(*refused), request_.keep_alive && request_.announced_body == 0);
  const HttpAdmission admission = std::get<HttpAdmission>(admitted);
  if (request_.announced_body > admission.most_body)
    return send({.status = 413,
                 .body = "the body of the request has " + std::to_string(request_.announced_body) +
                         " bytes; at most " + std::to_string(admission.most_body) + " are accepted\n"},
                false);
  known_ = known_ || admission.known;
  serving_ = admission.known;  // also while its body arrives
  arm_timer();                 // for the body
  const std::string* expects = request_.field("expect");
  if (expects == nullptr || pending_.size() >= request_.announced_body) return receive_body();
  out_ = "HTTP/1.1 100 Continue\r\n\r\n";
  socket_->write(asio::buffer(out_), [self = shared_from_this()](const ErrorValue& error, std::size_t) {
    if (error || !self->is_open()) return self->close();
    self->receive_body();
  });
}

void HttpConnection::receive_body() {
  if (pending_.size() < request_.announced_body) {
    // Each 256 KiB have the time limit for themselves.
    if (pending_.size() / kFilePiece != left_over_) {
      left_over_ = pending_.size() / kFilePiece;
      arm_timer();
    }
    return read(&HttpConnection::receive_body);
  }
  left_over_ = 0;
  request_.body = pending_.substr(0, request_.announced_body);
  pending_.erase(0, request_.announced_body);
  serve();
}

void HttpConnection::serve() {
  timer_.cancel();  // the service needs as long as it needs
  serving_ = true;
  keep_ = request_.keep_alive;
  house_.service->serve(
      std::move(request_), [&io = house_.io, self = shared_from_this()](HttpResponse response) {
        protocol::post(
            io, [self, response = std::move(response)]() mutable { self->respond(std::move(response)); });
      });
}

void HttpConnection::respond(HttpResponse response) {
  if (!is_open()) return;
  if (response.stream && !head_only_) return open_stream(response);
  send(std::move(response), keep_);
}

void HttpConnection::send(HttpResponse response, bool keep) {
  keep_ = keep;
  std::uint64_t length = response.body.size();
  if (!response.file.empty()) {
    auto file = ReadOnlyFile::open(response.file);
    if (!file) {
      response = {.status = 404, .body = "the file is no longer there; ask again\n"};
      length = response.body.size();
    } else {
      length = file->size();
      if (!head_only_) file_ = std::move(*file);
      file_offset_ = 0;
    }
  }
  const bool bodiless = response.status == 204 || response.status == 304;
  out_ = head_of(response, {.keep_alive = keep, .length = bodiless ? std::nullopt : std::optional(length)});
  body_offset_ = 0;
  body_.clear();
  if (!head_only_ && !file_ && !bodiless) body_ = std::move(response.body);
  if (body_.size() <= kFilePiece) out_ += std::exchange(body_, {});
  arm_timer();
  socket_->write(asio::buffer(out_), [self = shared_from_this()](const ErrorValue& error, std::size_t) {
    if (error || !self->is_open()) return self->close();
    self->sent();
  });
}

void HttpConnection::sent() {
  if (file_ && file_offset_ < file_->size()) return send_file_piece();
  if (body_offset_ < body_.size()) return send_body_piece();
  file_.reset();
  body_.clear();
  serving_ = false;
  out_.clear();
  if (!keep_) return end();
  arm_timer();
  next_request();
}

void HttpConnection::send_body_piece() {
  out_ = body_.substr(body_offset_, kFilePiece);
  body_offset_ += out_.size();
  arm_timer();
  socket_->write(asio::buffer(out_), [self = shared_from_this()](const ErrorValue& error, std::size_t) {
    if (error || !self->is_open()) return self->close();
    self->sent();
  });
}

void HttpConnection::send_file_piece() {
  out_.resize(std::min<std::uint64_t>(kFilePiece, file_->size() - file_offset_));
  if (!file_->read(file_offset_, std::as_writable_bytes(std::span(out_)))) return close();
  file_offset_ += out_.size();
  arm_timer();
  socket_->write(asio::buffer(out_), [self = shared_from_this()](const ErrorValue& error, std::size_t) {
    if (error || !self->is_open()) return self->close();
    self->sent();
  });
}

void HttpConnection::open_stream(const HttpResponse& response) {
  stream_ = std::make_shared<HttpEventStream>(house_.io, house_.options.max_behind, weak_from_this(),
                                              &HttpConnection::stream_on);
  out_ = head_of(response, {.keep_alive = false, .length = std::nullopt});
  arm_timer();
  socket_->write(asio::buffer(out_), [self = shared_from_this()](const ErrorValue& error, std::size_t) {
    if (error || !self->is_open()) return self->close();
    self->out_.clear();
    self->watch_stream();
    self->stream_on();
  });
  response.stream(stream_);
}

// Sends what is queued. Nothing is sent while an earlier write is in progress; its end calls again.
void HttpConnection::stream_on() {
  if (!is_open() || !out_.empty()) return;
  auto queued = stream_->take();
  if (queued.bytes.empty() && queued.ends) return end();
  if (queued.bytes.empty()) {
    timer_.after(house_.options.heartbeat, protocol::weakly(this, [this] { stream_->send(kHeartbeat); }));
    return;
  }
  out_ = std::move(queued.bytes);
  arm_timer();
  socket_->write(asio::buffer(out_), [self = shared_from_this()](const ErrorValue& error, std::size_t) {
    if (error || !self->is_open()) return self->close();
    self->out_.clear();
    self->stream_on();
  });
}

// Reads until the peer closes the connection. It has nothing more to send.
void HttpConnection::watch_stream() {
  socket_->read_some(asio::buffer(piece_), [self = shared_from_this()](const ErrorValue& error, std::size_t) {
    if (error || !self->is_open()) return self->close();
    self->watch_stream();
  });
}

void HttpConnection::end() {
  arm_timer();
  const bool reading = stream_ != nullptr;  // watch_stream() closes
  socket_->end([self = shared_from_this(), reading](const ErrorValue&, std::size_t) {
    if (!reading) self->read_left_over();
  });
}

void HttpConnection::read_left_over() {
  socket_->read_some(asio::buffer(piece_),
                     [self = shared_from_this()](const ErrorValue& error, std::size_t size) {
                       self->left_over_ += size;
                       if (error || self->left_over_ > kMaxLeftOver) return self->close();
                       self->read_left_over();
                     });
}

}  // namespace fedge::server
