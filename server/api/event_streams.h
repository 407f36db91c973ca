// EventStreams sends the coordinator's events to those who watch GET /events. Each of them gets the events of
// the projects in which it is at least a viewer. Its access token is checked again every second, so a
// revocation ends the stream. Use it on the server's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "protocol/session/loop.h"
#include "server/access/users.h"
#include "server/http/http.h"
#include "server/live/live.h"

namespace boost::asio {
class io_context;
}

namespace fedge::server {

class EventStreams : public std::enable_shared_from_this<EventStreams> {
 public:
  // Returns who sends this request now, or the answer that refuses it.
  using Authenticate = std::function<std::variant<Principal, HttpResponse>(const HttpRequest&)>;
  // Events that come less than `pause` after the last ones are sent together: a run with fast rounds would
  // otherwise spend its time on those who watch it.
  EventStreams(boost::asio::io_context& io, std::shared_ptr<Live> live, Authenticate authenticate,
               Duration pause = kPause);
  static constexpr Duration kPause = seconds(0.2);

  // Begins to follow the events. Call once.
  void start();
  static constexpr std::size_t kMost = 256;        // streams; other connections stay free for requests
  static constexpr std::size_t kMostOfUser = 128;  // of these, of one user

  // Returns the answer to a GET /events. kInvalid: a parameter is wrong; kResource: there are too many
  // streams. A Last-Event-ID continues an earlier stream; if events were dropped meanwhile, the first event
  // is named gap.
  Result<HttpResponse> open(const HttpRequest& request, const Principal& sender);
  void stop();

 private:
  struct Watcher {
    HttpRequest request;
    Principal sender;
    std::optional<std::uint64_t> run;
    std::vector<std::string> names;  // empty: all
    std::uint64_t seen = 0;          // last event that was looked at
    bool gap = false;                // to be told first
    std::shared_ptr<EventStream> stream = {};
  };
  void wake();
  // Sends now, or once the pause has passed.
  void send_soon();
  void send();
  // Runs every second while there are watchers.
  void check_again();
  // Whether the watcher is there and still admitted; takes up what it may see now.
  bool admits(Watcher& watcher);
  // Sends what the watcher has not seen; false: it is gone.
  bool serve(Watcher& watcher);
  static bool wants(const Watcher& watcher, const FeedEvent& event);

  boost::asio::io_context& io_;
  std::shared_ptr<Live> live_;
  Authenticate authenticate_;
  std::string epoch_;  // of this process, in the ids of events
  std::atomic<bool> woken_ = false;
  std::vector<std::shared_ptr<Watcher>> watchers_;
  protocol::Timer timer_;
  bool checking_ = false;  // timer_ runs
  Duration pause_;
  protocol::Timer batch_;
  bool waiting_ = false;                                            // batch_ runs
  std::optional<std::chrono::steady_clock::time_point> sent_ = {};  // last
};

}  // namespace fedge::server
