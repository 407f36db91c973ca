#include "client/trainers/conversation.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "core/node.h"

namespace fedge::client {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{16} << 10;
constexpr Duration kLookEvery = seconds(0.5);  // check the process itself: others may hold its output open
// How long a program may take to exit after its input ended, and again after a request to end.
constexpr Duration kToLeave = seconds(1);
constexpr Duration kToEnd = seconds(5);  // between the end of a program's output and its exit

// Makes poll() return when any thread requests a stop.
class Wake {
 public:
  explicit Wake(const Conversation::Waiting& waiting)
      : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        stop_(waiting.stop, Ring{fd_}),
        finish_(waiting.finish, Ring{fd_}),
        leave_(waiting.leave, Ring{fd_}) {}
  ~Wake() {
    // Remove the callbacks first: they use the descriptor.
    stop_.reset();
    finish_.reset();
    leave_.reset();
    ::close(fd_);
  }
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;
  int fd() const { return fd_; }

 private:
  struct Ring {
    int fd;
    void operator()() const {
      const std::uint64_t one = 1;
      if (::write(fd, &one, sizeof one) < 0) return;  // already signalled
    }
  };
  struct Bell {
    Bell(const std::stop_token& token, Ring ring) { callback.emplace(token, ring); }
    void reset() { callback.reset(); }
    std::optional<std::stop_callback<Ring>> callback;
  };
  int fd_;
  Bell stop_;
  Bell finish_;
  Bell leave_;
};

int milliseconds(Duration duration) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<std::int64_t>(count, 0, 60'000));
}

}  // namespace

Result<std::unique_ptr<Conversation>> Conversation::begin(const TrainerOptions& options,
                                                          const PayloadLimits& limits) {
  FEDGE_TRY(process,
            ChildProcess::start(
                {.command = options.command, .memory_bytes = options.memory_bytes, .nice = options.nice}));
  return std::unique_ptr<Conversation>(new Conversation(options, std::move(process), limits));
}

Conversation::~Conversation() {
  process_->close_input();
  process_->ends_within(kToLeave);
  read_errors();
  process_->end(kToLeave);
  read_errors();
  log_.finish([&](const std::string& line) { report(Severity::kInfo, "trainer.output", "line", line); });
}

void Conversation::say(std::string frame) { outgoing_.push_back({std::move(frame), {}}); }
void Conversation::lend(std::span<const std::byte> bytes) { outgoing_.push_back({{}, bytes}); }

void Conversation::report(Severity severity, const char* name, const char* key,
                          const std::string& value) const {
  if (options_.on_event) options_.on_event(Event{severity, name, {}}.with(key, value));
}

Result<TrainerFrame> Conversation::listen(const Waiting& waiting) {
  const Wake wake(waiting);
  silent_at_ = trainer_now() + options_.silence;
  give_up_at_.reset();
  told_to_finish_ = false;
  for (;;) {
    if (waiting.leave.stop_requested()) return Error{ErrorCode::kUnavailable, "the client is stopping"};
    pass_on_stops(waiting);
    const Time until = give_up_at_ ? std::min(silent_at_, *give_up_at_) : silent_at_;
    if (trainer_now() >= until) return silent(waiting);
    FEDGE_TRY(frame, exchange(until - trainer_now(), wake.fd()));
    if (!frame) continue;
    silent_at_ = trainer_now() + options_.silence;
    FEDGE_TRY(answer, answers(frame->message, waiting));
    if (!answer) continue;
    read_errors();
    if (std::any_of(outgoing_.begin(), outgoing_.end(),
                    [](const Piece& piece) { return piece.owned.empty(); }))
      return invalid("the trainer program answered before it had read the whole task");
    return std::move(*frame);
  }
}

void Conversation::pass_on_stops(const Waiting& waiting) {
  if (waiting.task == 0) {
    if (waiting.stop.stop_requested() && !give_up_at_) give_up_at_ = trainer_now();
    return;
  }
  if (waiting.stop.stop_requested() && !give_up_at_) {
    give_up_at_ = trainer_now() + options_.grace;
    say(stop_frame(waiting.task, true));
  } else if (waiting.finish.stop_requested() && !told_to_finish_ && !give_up_at_) {
    told_to_finish_ = true;
    say(stop_frame(waiting.task, false));
  }
}

// Whether this message ends the wait; an error if it may not be sent now.
Result<bool> Conversation::answers(const TrainerMessage& message, const Waiting& waiting) {
  const auto about = [&](std::uint64_t task) -> Result<bool> {
    if (task > waiting.task || task == 0)
      return invalid("the trainer program answered task " + std::to_string(task) +
                     ", which this client did not send");
    return task == waiting.task;
  };
  return std::visit(Overloaded{[&](const TrainerReady&) -> Result<bool> {
                                 if (waiting.task == 0) return true;
                                 return invalid("the trainer program sent \"ready\" twice");
                               },
                               [&](const TrainerProgress& progress) -> Result<bool> {
                                 if (progress.fraction && options_.on_event) {
                                   Event event{Severity::kDebug, "trainer.progress", {}};
                                   event.with("fraction", *progress.fraction);
                                   if (progress.loss) event.with("loss", *progress.loss);
                                   options_.on_event(event);
                                 }
                                 return false;
                               },
                               [&](const TrainerUpdate& update) { return about(update.task); },
                               [&](const TrainerPredictions& some) { return about(some.task); },
                               [&](const TrainerEvaluation& all) { return about(all.task); },
                               [&](const TrainerFailure& failure) -> Result<bool> {
                                 return failure.task ? about(*failure.task) : Result<bool>(true);
                               }},
                    message);
}

// One iteration: writes and reads what is ready within `patience`.
Result<std::optional<TrainerFrame>> Conversation::exchange(Duration patience, int wake) {
  const bool sends = !outgoing_.empty() && process_->input() >= 0;
  std::array<pollfd, 4> polled = {
      pollfd{process_->output(), POLLIN, 0}, pollfd{process_->errors(), POLLIN, 0},
      pollfd{sends ? process_->input() : -1, POLLOUT, 0}, pollfd{wake, POLLIN, 0}};
  const int ready = ::poll(polled.data(), polled.size(), milliseconds(std::min(patience, kLookEvery)));
  if (ready == 0 && process_->ends_within(Duration::zero())) return closed();
  if (ready <= 0) return std::optional<TrainerFrame>();  // timeout, or a signal
  if (polled[3].revents != 0) {
    std::uint64_t rings = 0;
    if (::read(wake, &rings, sizeof rings) < 0) rings = 0;  // the value does not matter
  }
  if (polled[1].revents != 0) read_errors();
  if (polled[2].revents != 0) send();
  if (polled[0].revents != 0) return receive();
  return std::optional<TrainerFrame>();
}

void Conversation::send() {
  while (!outgoing_.empty()) {
    const auto left = outgoing_.front().left();
    if (!left.empty()) {
      const auto written = process_->write(left.data(), left.size());
      if (!written) return process_->close_input();  // the end of its output gives the reason
      if (*written == 0) return;
      outgoing_.front().sent += *written;
      if (*written < left.size()) return;
    }
    outgoing_.pop_front();
  }
}

Result<std::optional<TrainerFrame>> Conversation::receive() {
  const auto room = reader_.room();
  const ssize_t got = ::read(process_->output(), room.data(), room.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<TrainerFrame>();
  if (got <= 0) return closed();
  return reader_.filled(static_cast<std::size_t>(got));
}

void Conversation::read_errors() {
  std::array<char, kReadAtOnce> bytes;
  if (process_->errors() < 0) return;
  const ssize_t got = ::read(process_->errors(), bytes.data(), bytes.size());
  if (got > 0) {
    log_.feed({bytes.data(), static_cast<std::size_t>(got)}, trainer_now(),
              [&](const std::string& line) { report(Severity::kInfo, "trainer.output", "line", line); });
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    process_->close_errors();
  }
}

Error Conversation::closed() {
  const std::string where = reader_.inside() ? " in the middle of a frame" : "";
  const bool ended = process_->ends_within(kToEnd);
  read_errors();
  if (!ended) return {ErrorCode::kUnavailable, "the trainer program closed its standard output" + where};
  return {ErrorCode::kUnavailable, "the trainer program " + process_->end(Duration::zero()) + where};
}

Error Conversation::silent(const Waiting& waiting) const {
  if (give_up_at_)
    return {ErrorCode::kUnavailable, "the trainer program did not stop task " + std::to_string(waiting.task) +
                                         " when it was told to stop"};
  std::string length = std::to_string(to_seconds(options_.silence));
  length.erase(length.find_last_not_of('0') + 1);
  if (length.back() == '.') length.pop_back();
  return {ErrorCode::kUnavailable, "the trainer program has sent nothing for " + length +
                                       " seconds, the limit of --trainer-timeout, and was stopped"};
}

}  // namespace fedge::client
