// TraceExporter sends parts of traces to a collector over OTLP/HTTP, from a thread of its own: nobody waits
// for it. Parts wait in a bounded queue; if it is full, the oldest are dropped. A request is repeated, with
// growing pauses, if the collector cannot be reached or asks for it (429, 502, 503, 504); after another error
// its spans are dropped. Losing spans affects no run. Call it from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "server/traces/http_post.h"
#include "server/traces/otlp.h"
#include "server/traces/trace_endpoint.h"
#include "server/traces/trace_part.h"

namespace fedge::server {

struct TraceLimits {
  std::size_t queue_parts = 1024;
  std::size_t queue_bytes = 16 << 20;     // as bytes_of() counts them
  std::size_t request_tasks = 2000;       // in one request
  std::chrono::milliseconds pause{1000};  // before the first repetition; doubled each time
  std::chrono::milliseconds longest_pause{60'000};
  std::chrono::milliseconds longest_asked{300'000};  // pause that a collector may ask for
  std::chrono::milliseconds patience{600'000};       // with one request, until its spans are dropped
  std::chrono::milliseconds farewell{800};           // for the queue, when the exporter ends
};

// Counts since the start of the process.
struct TraceCounts {
  std::uint64_t exported = 0;  // spans that a collector has accepted
  std::uint64_t dropped = 0;   // spans
  std::uint64_t failed = 0;    // requests without a success
};

class TraceExporter {
 public:
  struct Options {
    TraceEndpoint endpoint;
    TraceResource resource;
    HttpPostOptions post = {};
    TraceLimits limits = {};
    // Receives events, on the exporter's thread or that of add(). May be empty.
    std::function<void(const Event&)> report = {};
  };

  explicit TraceExporter(Options options);
  ~TraceExporter();  // stop()
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

  // Never waits for the collector. After stop(), spans are dropped.
  void add(TracePart part);
  // Sends what is in the queue until a request fails, but not for longer than `farewell`, and ends the
  // thread.
  void stop();

  TraceCounts counts() const;
  // The size of the queue, as bytes_of() counts it.
  std::size_t queued_bytes() const;

 private:
  using Parts = std::vector<TracePart>;
  enum class Outcome { kDone, kAgain };

  void work();
  // Waits for parts, and takes those of the next request; none if the exporter has stopped.
  Parts take();
  // Returns false if the exporter stops and the request has failed.
  bool deliver(Parts parts);
  // Sends a request once. `pause` receives how long the collector asks to wait.
  Outcome send_once(const std::string& body, std::size_t spans,
                    std::optional<std::chrono::milliseconds>& pause);
  void succeed(const HttpPost::Answer& answer, std::size_t spans);
  // Returns false if the exporter stops meanwhile.
  bool wait(std::chrono::milliseconds pause);
  void push(TracePart part);
  void drop(std::size_t spans, const std::string& reason, bool tell = true);
  void drop_rest();
  void report(const Event& event) const;

  Options options_;
  HttpPost post_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TracePart> queue_;
  std::size_t bytes_ = 0;  // of queue_
  TraceCounts counts_;
  bool overflowing_ = false;  // reported since the last success
  bool failing_ = false;      // likewise
  bool stopping_ = false;
  std::string last_fault_;  // of the exporter's thread
  std::thread thread_;      // last: it uses the rest
};

}  // namespace fedge::server
