// The first exchange on a fresh link, from the client's side: Hello out, Welcome or Goodbye back.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "protocol/messages.h"
#include "protocol/session/link.h"

namespace fedge::client {

struct Greeting {
  std::string software;
  std::string whom = "the coordinator";  // for error texts
  std::string secret = {};               // of a join token, if any
  std::string listens = {};              // protocol::Hello
  // Called before done if the coordinator says goodbye; may be empty.
  std::function<void(const protocol::Goodbye&)> on_goodbye = {};
};

// Sends Hello and calls done once with the coordinator's answer. On success the link is authorised; its
// callbacks are the caller's again from then on.
void greet(const std::shared_ptr<protocol::Link>& link, const Greeting& greeting,
           std::function<void(Result<protocol::Welcome>)> done);
void greet(const std::shared_ptr<protocol::Link>& link, const std::string& software,
           const std::string& secret, std::function<void(Result<protocol::Welcome>)> done);

}  // namespace fedge::client
