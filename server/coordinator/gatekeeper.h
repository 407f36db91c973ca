// Gatekeeper: stands between a fresh link and the run. It waits for Hello, agrees on a protocol
// version, and looks the key up; only then it authorises the link. A Hello with a join token enrols the
// key and ends the link: joining is not taking part. Until a link is authorised, nothing but one small
// message is read from the peer, and a link that is not authorised within the handshake timeout closes
// itself. A client that connects again and again has to wait between, and refusals are logged sparingly.
// Whoever is revoked after that is told and cut off within a second. One thread, and one more that writes
// enrolments, one at a time: a join takes syncs, which nobody else waits for. Outlives its links' callbacks.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/time.h"
#include "protocol/session/endpoint.h"
#include "protocol/session/link.h"
#include "server/access/arrival_rate.h"
#include "server/access/join_limits.h"
#include "server/coordinator/connect_rate.h"
#include "server/coordinator/refusal_log.h"
#include "server/enrolment.h"

namespace boost::asio {
class io_context;
}

namespace fedge::server {

struct GatekeeperOptions {
  std::string software;
  JoinRates rates;
  ArrivalRules arrivals = {};
  std::function<Time()> now;  // a clock that never jumps
  std::function<std::vector<RunId>()> runs = [] {
    return std::vector<RunId>();
  };  // that who is let in may be asked to take part in
};

class Gatekeeper {
 public:
  Gatekeeper(boost::asio::io_context& io, const std::filesystem::path& data_directory,
             GatekeeperOptions options);
  ~Gatekeeper();

  // Called with each client let in; its link's callbacks are the callee's to set.
  using Admitted = std::function<void(ClientId, std::shared_ptr<protocol::Link>, const protocol::Hello&)>;
  void on_admitted(Admitted admitted);
  // Called with each client that was let in and may be here no more, and why: kRefused, it has been revoked.
  // It is told next, its link closes, and nothing more of it may count.
  using Expelled = std::function<void(ClientId, const protocol::Link&, const Error&)>;
  void on_expelled(Expelled expelled);
  void on_event(std::function<void(const Event&)> report);

  // Looks every quarter of a second, until close(), for changes of who may connect.
  void watch();
  void receive(std::shared_ptr<protocol::Link> link);
  // How many clients may connect, as the book says; the reason why it cannot be read.
  Result<std::size_t> enrolled() { return enrolment_.count(); }
  // Whether the key of this link, which was let in, is still welcome; else it is expelled.
  bool is_welcome(const std::shared_ptr<protocol::Link>& link);
  // Tells the peer why it is not let in, or no longer, and closes the link.
  void refuse(const std::shared_ptr<protocol::Link>& link, const Error& error);
  // Logs a connection that ended before it was a link.
  void refused(const protocol::Address& peer, const Error& why);
  // Closes the links that have not said hello yet; they may come back.
  void close(const std::string& reason);
  // How long so many clients are asked to stay away when all are sent away.
  Duration window(std::size_t clients) const { return arrivals_.window(clients); }

 private:
  void greet(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello);
  void join(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello);
  struct Joining;
  void begin_next_join();
  void joined(const Joining& joining, const Result<Standing>& standing);
  // Counts who has joined before this process began.
  void recall_joins();
  void let_in(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello);
  void welcome(protocol::Link& link, const Standing& standing, std::vector<RunId> runs);
  // Says goodbye without a line in the log.
  void dismiss(const std::shared_ptr<protocol::Link>& link, const Error& error);
  void look_again();
  void report_fault(const std::string& fault);
  Result<ClientId> check(const protocol::Link& link);
  // If it is inside, and may no longer be.
  void expel(ClientId client);

  // Nothing to reproach it with: there are too many at once.
  void send_away(const std::shared_ptr<protocol::Link>& link, Duration window);

  boost::asio::io_context& io_;
  Enrolment enrolment_;
  GatekeeperOptions options_;
  JoinLimits limits_;
  ArrivalRate arrivals_;
  Admitted admitted_;
  Expelled expelled_;
  std::function<void(const Event&)> report_;
  RefusalLog refusals_;
  ConnectRate rate_;
  // Links before their Hello; the listener bounds their number.
  std::set<std::shared_ptr<protocol::Link>> waiting_;
  std::set<std::shared_ptr<protocol::Link>> entering_;  // they have shown a token that is known
  std::deque<std::shared_ptr<const Joining>> joining_;  // the first is being written down
  struct Writer;
  std::shared_ptr<Writer> writer_;
  std::map<ClientId, std::weak_ptr<protocol::Link>> inside_;  // the last link of each client let in
  struct Watch;
  std::shared_ptr<Watch> watch_;  // its timer's handlers hold it weakly, and this only through it
  std::string fault_;             // why the book cannot be read, said once
};

}  // namespace fedge::server
