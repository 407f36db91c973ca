// Gatekeeper: stands between a fresh link and the run. It waits for Hello, agrees on a protocol
// version, and looks the key up; only then it authorises the link. A Hello with a join token enrols the
// key and ends the link: joining is not taking part. Until a link is authorised, nothing but one small
// message is read from the peer, and a link that is not authorised within the handshake timeout closes
// itself. One thread; outlives its links' callbacks.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "core/event.h"
#include "protocol/session/link.h"
#include "server/arrival_rate.h"
#include "server/enrolment.h"

namespace fedge::server {

class Gatekeeper {
 public:
  Gatekeeper(Enrolment enrolment, std::string software, const ArrivalRules& arrivals = {});

  // Called with each client let in; its link's callbacks are the callee's to set.
  void on_admitted(std::function<void(ClientId, std::shared_ptr<protocol::Link>)> admitted);
  void on_event(std::function<void(const Event&)> report);

  void receive(std::shared_ptr<protocol::Link> link);
  // Whether the key of this link is still welcome.
  Result<ClientId> check(const protocol::Link& link) { return enrolment_.authenticate(link.peer()); }
  // Tells the peer why it is not let in, or no longer, and closes the link.
  void refuse(const std::shared_ptr<protocol::Link>& link, const Error& error);
  // Closes the links that have not said hello yet; they may come back.
  void close(const std::string& reason);
  // How long so many clients are asked to stay away when all are sent away.
  Duration window(std::size_t clients) const { return arrivals_.window(clients); }

 private:
  void greet(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello);

  // Nothing to reproach it with: there are too many at once.
  void send_away(const std::shared_ptr<protocol::Link>& link, Duration window);

  Enrolment enrolment_;
  ArrivalRate arrivals_;
  std::string software_;
  std::function<void(ClientId, std::shared_ptr<protocol::Link>)> admitted_;
  std::function<void(const Event&)> report_;
  std::set<std::shared_ptr<protocol::Link>>
      waiting_;  // links before their Hello; the listener bounds their number
};

}  // namespace fedge::server
