// Gatekeeper authenticates fresh links before they reach the runs. It waits for Hello, checks the protocol
// version and looks up the key; only then does it authorise the link. A Hello with a join token enrols the
// key and closes the link; the client connects again to take part. Before authorisation the gatekeeper
// reads only one small message, and the link closes itself after the handshake timeout. Clients that
// connect too often are refused. Repeated refusals are logged sparingly. A revoked client is told and
// disconnected within a second. Use it on one thread. A second thread writes enrolments one at a time,
// because each needs syncs. Must outlive its links' callbacks.
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
  std::function<Time()> now;  // a monotonic clock
  std::function<std::vector<RunId>()> runs = [] {
    return std::vector<RunId>();
  };  // runs named in an admitted client's Welcome
  // Whether the coordinator still has the key that it has proved to this link.
  std::function<bool(const protocol::Link&)> is_current = [](const protocol::Link&) { return true; };
};

// Whether the client's Hello states protocol::kContactFeature.
bool understands_contact(const protocol::Hello& hello);

class Gatekeeper {
 public:
  Gatekeeper(boost::asio::io_context& io, const std::filesystem::path& data_directory,
             GatekeeperOptions options);
  ~Gatekeeper();

  // Called with each admitted client; the callee sets the link's callbacks.
  using Admitted = std::function<void(ClientId, std::shared_ptr<protocol::Link>, const protocol::Hello&)>;
  void on_admitted(Admitted admitted);
  // Called with each admitted client that may no longer connect, and why; kRefused: it was revoked. The
  // gatekeeper then tells the client and closes its link; later messages from it must not count.
  using Expelled = std::function<void(ClientId, const protocol::Link&, const Error&)>;
  void on_expelled(Expelled expelled);
  // Called with each admitted client whose entry in the book has changed, but that may still connect.
  void on_changed(std::function<void(ClientId)> changed) { changed_ = std::move(changed); }
  // Called with the project of each client in the book, now and when it changes, and before any event about
  // the client.
  void on_placed(std::function<void(ClientId, const std::string&)> placed) { placed_ = std::move(placed); }
  // Called with each client that is revoked, connected or not.
  void on_revoked(std::function<void(ClientId)> revoked) { revoked_ = std::move(revoked); }
  void on_event(std::function<void(const Event&)> report);

  // Checks every quarter of a second, until close(), whether the enrolment book changed.
  void watch();
  void receive(std::shared_ptr<protocol::Link> link);
  // Returns how many clients may connect, or why the enrolment book cannot be read.
  Result<std::size_t> enrolled() { return enrolment_.count(); }
  // Returns whether the key of this admitted link is still admitted; if not, expels its client.
  bool is_welcome(const std::shared_ptr<protocol::Link>& link);
  bool is_revoked(ClientId client) const { return revoked_clients_.contains(client); }
  // Returns the project of this admitted link's client; empty if it is not known.
  std::string project_of(const protocol::Link& link);
  // Returns the labels of this admitted link's client; nothing if they are not known yet.
  std::optional<std::vector<std::string>> labels_of(const protocol::Link& link) const;
  // Tells the peer why it is refused or expelled, and closes the link.
  void refuse(const std::shared_ptr<protocol::Link>& link, const Error& error);
  // Logs a connection that failed before it became a link.
  void refused(const protocol::Address& peer, const Error& why);
  // Closes the links that are not admitted yet, with a window for reconnecting.
  void close(const std::string& reason);
  // Returns the window for `clients` clients that are all sent away.
  Duration window(std::size_t clients) const { return arrivals_.window(clients); }

 private:
  void greet(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello);
  void join(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello);
  bool limited(const std::shared_ptr<protocol::Link>& link, const JoinAttempt& attempt);
  // Counts a token that the enrolment book does not have, and refuses it.
  void wrong_token(const std::shared_ptr<protocol::Link>& link, const JoinAttempt& attempt);
  struct Joining;
  bool still_open(const Joining& joining);
  void begin_next_join();
  void joined(const Joining& joining, const Result<Standing>& standing);
  // Counts the joins of earlier processes within the limits' window.
  void recall_joins();
  void let_in(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello);
  void welcome(protocol::Link& link, const Standing& standing, std::vector<std::string> features,
               std::vector<RunId> runs);
  // Sends Goodbye and closes the link, without logging.
  void dismiss(const std::shared_ptr<protocol::Link>& link, const Error& error);
  void look_again();
  // Reports projects and revocations.
  void take_changes(const std::vector<ClientRecord>& changed);
  void report_fault(const std::string& fault);
  Result<ClientId> check(const protocol::Link& link);
  // Expels the client if it is connected and may no longer be; else reports that its entry has changed.
  void look_at(ClientId client);
  void expel(ClientId client);

  // Sends the client away because too many connect at once; it is not at fault.
  void send_away(const std::shared_ptr<protocol::Link>& link, Duration window);

  boost::asio::io_context& io_;
  Enrolment enrolment_;
  GatekeeperOptions options_;
  JoinLimits limits_;
  ArrivalRate arrivals_;
  Admitted admitted_;
  Expelled expelled_;
  std::function<void(ClientId)> changed_ = [](ClientId) {};
  std::function<void(ClientId)> revoked_ = [](ClientId) {};
  std::function<void(ClientId, const std::string&)> placed_ = [](ClientId, const std::string&) {};
  std::function<void(const Event&)> report_;
  RefusalLog refusals_;
  ConnectRate rate_;
  // Links before their Hello; the listener bounds their number.
  std::set<std::shared_ptr<protocol::Link>> waiting_;
  std::set<std::shared_ptr<protocol::Link>> entering_;  // links with a known token
  std::deque<std::shared_ptr<const Joining>> joining_;  // the first is being enrolled
  struct Writer;
  std::shared_ptr<Writer> writer_;
  std::map<ClientId, std::weak_ptr<protocol::Link>> inside_;  // last link of each admitted client
  std::set<ClientId> revoked_clients_;
  struct Watch;
  std::shared_ptr<Watch> watch_;  // timer handlers hold it weakly, to detect close()
  std::string fault_;             // last reported error of reading the book
};

}  // namespace fedge::server
