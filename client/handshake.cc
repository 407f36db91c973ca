#include "client/handshake.h"

#include <utility>

namespace fedge::client {

void greet(const std::shared_ptr<protocol::Link>& link, const std::string& software,
           const std::string& secret, std::function<void(Result<protocol::Welcome>)> done) {
  greet(link, Greeting{.software = software, .secret = secret}, std::move(done));
}

void greet(const std::shared_ptr<protocol::Link>& link, const Greeting& greeting,
           std::function<void(Result<protocol::Welcome>)> done) {
  // Calls `done` only for the first event: answer, refusal or end of the link.
  auto finish = [done = std::move(done), called = false](Result<protocol::Welcome> result) mutable {
    if (std::exchange(called, true)) return;
    done(std::move(result));
  };
  auto shared = std::make_shared<decltype(finish)>(std::move(finish));
  const std::weak_ptr<protocol::Link> weak = link;
  link->set_callbacks(
      {.on_message =
           [shared, weak, whom = greeting.whom,
            on_goodbye = greeting.on_goodbye](const protocol::Message& message) {
             if (const auto* welcome = std::get_if<protocol::Welcome>(&message)) {
               if (welcome->version != protocol::kProtocolVersion) {
                 (*shared)(Error{ErrorCode::kUnsupported, whom + " chose protocol version " +
                                                              std::to_string(welcome->version) +
                                                              ", but this client supports version " +
                                                              std::to_string(protocol::kProtocolVersion)});
                 return;
               }
               if (const auto alive = weak.lock()) alive->authorise();
               (*shared)(*welcome);
             } else if (const auto* goodbye = std::get_if<protocol::Goodbye>(&message)) {
               if (on_goodbye) on_goodbye(*goodbye);
               (*shared)(Error{goodbye->code, whom + " refused the connection: " + goodbye->reason});
             } else {
               (*shared)(invalid(whom + " sent " + protocol::name_of(message) +
                                 " instead of welcome as its first message"));
             }
           },
       .on_closed = [shared](const Error& error) { (*shared)(error); }});
  link->send(protocol::Hello{.features = greeting.features,
                             .software = greeting.software,
                             .token = greeting.secret,
                             .listens = greeting.listens,
                             .platform = greeting.platform});
}

}  // namespace fedge::client
