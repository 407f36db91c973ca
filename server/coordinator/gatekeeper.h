// Gatekeeper: stands between a fresh link and the run. It waits for Hello, agrees on a protocol
// version, and looks the key up; only then it authorises the link. A Hello with a join token enrols the
// key and ends the link: joining is not taking part. Until a link is authorised, nothing but one small
// message is read from the peer, and a link that is not authorised within the handshake timeout closes
// itself. A client that connects again and again has to wait between, and refusals are logged sparingly.
// Whoever is revoked after that is told and cut off within a second. One thread; outlives its links'
// callbacks.
#pragma once

#include <chrono>
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
  Gatekeeper(boost::asio::io_context& io, Enrolment enrolment, GatekeeperOptions options);
  ~Gatekeeper();

  // Called with each client let in; its link's callbacks are the callee's to set.
  using Admitted = std::function<void(ClientId, std::shared_ptr<protocol::Link>, const protocol::Hello&)>;
  void on_admitted(Admitted admitted);
  // Called with each client that was let in and has been revoked since: it has been told, its link closes,
  // and nothing more of it may count.
  void on_expelled(std::function<void(ClientId, const protocol::Link&)> expelled);
  void on_event(std::function<void(const Event&)> report);

  // Looks every quarter of a second, until close(), for changes of who may connect.
  void watch();
  void receive(std::shared_ptr<protocol::Link> link);
  // Whether the key of this link is still welcome.
  Result<ClientId> check(const protocol::Link& link);
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
  void let_in(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello);
  void welcome(protocol::Link& link, const Standing& standing, std::vector<RunId> runs);
  // Says goodbye without a line in the log.
  void dismiss(const std::shared_ptr<protocol::Link>& link, const Error& error);
  void look_again();
  void expel_revoked();

  // Nothing to reproach it with: there are too many at once.
  void send_away(const std::shared_ptr<protocol::Link>& link, Duration window);

  Enrolment enrolment_;
  GatekeeperOptions options_;
  JoinLimits limits_;
  ArrivalRate arrivals_;
  Admitted admitted_;
  std::function<void(ClientId, const protocol::Link&)> expelled_;
  std::function<void(const Event&)> report_;
  RefusalLog refusals_;
  ConnectRate rate_;
  // Links before their Hello; the listener bounds their number.
  std::set<std::shared_ptr<protocol::Link>> waiting_;
  std::map<ClientId, std::weak_ptr<protocol::Link>> inside_;  // the last link of each client let in
  struct Watch;
  std::shared_ptr<Watch> watch_;  // its timer's handlers hold it weakly, and this only through it
  std::string fault_;             // why the book could not be read, said once
};

}  // namespace fedge::server
