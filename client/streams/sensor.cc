#include "client/streams/sensor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "client/streams/read_limit.h"
#include "core/crypto/sha256.h"
#include "core/platform/detail/descriptor.h"
#include "core/platform/files.h"
#include "learn/screening/stream_screening.h"

namespace fedge::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = 4096;              // bytes that are read at once
constexpr auto kQuiet = std::chrono::minutes(1);  // between reports of one kind of fault
constexpr std::size_t kMostIdentity = 256;
constexpr std::size_t kIdentityBytes = 256;  // of a file's beginning
constexpr const char* kSourceFile = "source";

// Opens a FIFO for writing, too: it then has no end when its writer leaves.
Result<Descriptor> open_source(const std::filesystem::path& source, bool& regular) {
  if (source == "-") {
    struct ::stat about {};
    regular = ::fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode);
    Descriptor copy(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    if (copy.get() < 0) return system_error("cannot read", "standard input", errno);
    return copy;
  }
  struct ::stat about {};
  if (::stat(source.c_str(), &about) != 0) return system_error("cannot open", source, errno);
  if (S_ISDIR(about.st_mode)) return invalid(source.string() + " is a directory, not a stream");
  regular = S_ISREG(about.st_mode);
  const int mode = S_ISFIFO(about.st_mode) ? O_RDWR : O_RDONLY;
  Descriptor file(::open(source.c_str(), mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return system_error("cannot open", source, errno);
  return file;
}

// Distinguishes a file from another one at the same path, also from one that was copied over it.
std::string identity_of_file(int fd) {
  struct ::stat about {};
  std::array<char, kIdentityBytes> start{};
  if (::fstat(fd, &about) != 0) return "";
  const ssize_t count = ::pread(fd, start.data(), start.size(), 0);
  return std::to_string(about.st_dev) + " " + std::to_string(about.st_ino) + " " +
         to_hex(sha256(std::string_view(start.data(), count > 0 ? static_cast<std::size_t>(count) : 0)));
}

}  // namespace

Result<SensorOptions> read_sensor_option(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return invalid("\"" + text + "\" is not NAME=PATH");
  if (text.front() == '.' || text.substr(0, equals).find('/') != std::string::npos)
    return invalid("the name \"" + text.substr(0, equals) + "\" cannot be that of a directory");
  return SensorOptions{.name = text.substr(0, equals), .source = text.substr(equals + 1), .directory = {}};
}

class Sensor::Reader {
 public:
  Reader(SensorOptions options, Descriptor source, Descriptor wake,
         std::shared_ptr<learn::SegmentStore> store)
      : options_(std::move(options)),
        store_(std::move(store)),
        source_(std::move(source)),
        wake_(std::move(wake)),
        screening_(options_.spec),
        limit_(kMostRates * options_.spec.screening.rate_hz, Clock::now()) {}

  ~Reader() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
  }

  void reopen_at_end() { reopens_ = true; }
  // A regular file that was read by an earlier process goes on after what was kept of it.
  Result<void> continue_file() {
    const auto path = options_.directory / kSourceFile;
    const std::string identity = identity_of_file(source_.get());
    const auto kept = read_file(path, kMostIdentity);
    std::istringstream before(kept ? *kept : std::string());
    std::string known;
    std::uint64_t first = 0;  // number of the first segment that may be of this file
    std::getline(before, known);
    if (known == identity && before >> first) {
      if (const auto last = store_->last_seconds(); last && store_->next() > first)
        screening_.skip_until(*last);
      return {};
    }
    return write_file_atomic(path, identity + "\n" + std::to_string(store_->next()) + "\n", 0600);
  }

  void start(Handlers handlers) {
    handlers_ = std::move(handlers);
    thread_ = std::thread([this] { run(); });
  }

  const SensorOptions& options() const { return options_; }
  const std::shared_ptr<learn::SegmentStore>& store() const { return store_; }

 private:
  enum class Wait { kReady, kTimeout, kStop };

  Wait wait(bool for_data, int milliseconds) {
    std::array<::pollfd, 2> polled = {{{wake_.get(), POLLIN, 0}, {for_data ? source_.get() : -1, POLLIN, 0}}};
    const int count = ::poll(polled.data(), polled.size(), milliseconds);
    if (polled[0].revents != 0) return Wait::kStop;
    if (count < 0 && errno != EINTR) return Wait::kStop;
    return count > 0 ? Wait::kReady : Wait::kTimeout;
  }

  void run() {
    started();
    const learn::StreamScreening::Handlers handlers{
        .on_segment = [this](const learn::KeptSegment& segment) { keep(segment); },
        .on_fault = [this](const char* kind, const std::string& what) { fault(kind, what); }};
    read_all(handlers);
    screening_.end(handlers);
    ended();
  }

  void started() {
    reading_ = true;
    event(Event{Severity::kInfo, "stream.started", {}}
              .with("source", options_.source.string())
              .with("directory", options_.directory.string())
              .with("segment_bytes", static_cast<std::int64_t>(store_->bytes())));
  }

  void ended() {
    if (!std::exchange(reading_, false)) return;
    const learn::StreamFigures& figures = screening_.figures();
    event(Event{Severity::kInfo, "stream.ended", {}}
              .with("samples", static_cast<std::int64_t>(figures.samples))
              .with("segments", static_cast<std::int64_t>(figures.segments)));
  }

  void read_all(const learn::StreamScreening::Handlers& handlers) {
    while (read_to_end(handlers) && reopens_) {
      screening_.end(handlers);
      ended();
      do {
        if (wait(false, kSilentMilliseconds) == Wait::kStop) return;
      } while (!reopen());
      started();
    }
  }

  // False: the stream is to end.
  bool read_to_end(const learn::StreamScreening::Handlers& handlers) {
    std::array<char, kPiece> bytes;
    bool silent = true;
    while (true) {
      const Wait waited = wait(true, kSilentMilliseconds);
      if (waited == Wait::kStop) return false;
      if (waited == Wait::kTimeout) {
        if (!std::exchange(silent, true)) pause(handlers);
        continue;
      }
      const ssize_t count = ::read(source_.get(), bytes.data(), bytes.size());
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count < 0)
        event(Event{Severity::kError, "stream.failed", {}}.with(
            "reason", system_error("cannot read", options_.source, errno).message));
      if (count <= 0) return true;
      silent = false;
      const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
      screening_.push(text, handlers);
      if (!slow_down(text)) return false;
    }
  }

  void pause(const learn::StreamScreening::Handlers& handlers) {
    screening_.pause(handlers);
    fault("silence", "no samples for " + std::to_string(kSilentMilliseconds / 1000) + " s");
  }

  // A device that was unplugged may come back.
  bool reopen() {
    bool regular = false;
    auto source = open_source(options_.source, regular);
    if (!source || regular) return false;
    source_ = std::move(*source);
    return true;
  }

  // Waits if too much was read in this second. False: the stream is to end.
  bool slow_down(std::string_view text) {
    const auto pause = limit_.wait(Clock::now(), text);
    return pause.count() == 0 || wait(false, static_cast<int>(pause.count())) != Wait::kStop;
  }

  void keep(const learn::KeptSegment& segment) {
    if (const auto kept = store_->add(segment); !kept)
      return event(Event{Severity::kError, "stream.segment_lost", {}}.with("reason", kept.error().message));
    event(Event{Severity::kDebug, "stream.kept", {}}
              .with("samples", static_cast<std::int64_t>(segment.samples()))
              .with("segment_bytes", static_cast<std::int64_t>(store_->bytes())));
    if (handlers_.on_kept) handlers_.on_kept();
  }

  // Reports a kind of fault at most once in kQuiet, with the number of those before.
  void fault(const char* kind, const std::string& what) {
    Fault& known = faults_[kind];
    ++known.count;
    const auto now = Clock::now();
    if (known.reported && now - *known.reported < kQuiet) return;
    known.reported = now;
    event(Event{Severity::kWarning, "stream.fault", {}}
              .with("kind", kind)
              .with("reason", what)
              .with("count", std::exchange(known.count, 0)));
  }

  void event(Event event) const {
    if (handlers_.on_event) handlers_.on_event(event.with("stream", options_.name));
  }

  struct Fault {
    std::int64_t count = 0;  // since it was reported
    std::optional<Clock::time_point> reported;
  };

  SensorOptions options_;
  std::shared_ptr<learn::SegmentStore> store_;
  Descriptor source_;
  Descriptor wake_;
  Handlers handlers_;
  learn::StreamScreening screening_;
  ReadLimit limit_;
  bool reopens_ = false;  // a device, which may come back
  bool reading_ = false;
  std::map<std::string_view, Fault> faults_;
  std::thread thread_;
};

Result<std::unique_ptr<Sensor>> Sensor::open(const SensorOptions& options) {
  bool regular = false;
  FEDGE_TRY(source, open_source(options.source, regular));
  Descriptor wake(::eventfd(0, EFD_CLOEXEC));
  if (wake.get() < 0) return system_error("cannot watch", options.source, errno);
  FEDGE_TRY(store, learn::SegmentStore::open(options.directory, {.most_bytes = options.most_bytes,
                                                                 .test_share = options.test_share,
                                                                 .window = options.spec.window,
                                                                 .rate_hz = options.spec.screening.rate_hz}));
  auto reader = std::make_unique<Reader>(options, std::move(source), std::move(wake), std::move(store));
  if (regular) FEDGE_TRY_VOID(reader->continue_file());
  if (!regular && options.source != "-") reader->reopen_at_end();
  return std::unique_ptr<Sensor>(new Sensor(std::move(reader)));
}

Sensor::Sensor(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
Sensor::~Sensor() = default;
void Sensor::start(Handlers handlers) { reader_->start(std::move(handlers)); }
const std::string& Sensor::name() const { return reader_->options().name; }
const std::shared_ptr<learn::SegmentStore>& Sensor::store() const { return reader_->store(); }

}  // namespace fedge::client
