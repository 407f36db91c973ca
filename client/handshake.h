// The first exchange on a new link, on the client's side: sends Hello, receives Welcome or Goodbye.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "protocol/messages.h"
#include "protocol/session/link.h"

namespace fedge::client {

struct Greeting {
  std::string software;
  std::string whom = "the coordinator";    // for error messages
  std::string secret = {};                 // of a join token, if any
  std::string listens = {};                // protocol::Hello
  std::string platform = {};               // likewise
  std::vector<std::string> features = {};  // likewise
  // Called before `done` if the coordinator says Goodbye; may be empty.
  std::function<void(const protocol::Goodbye&)> on_goodbye = {};
};

// Sends Hello and calls `done` once with the coordinator's answer. After success the link is authorised,
// and the caller sets its callbacks.
void greet(const std::shared_ptr<protocol::Link>& link, const Greeting& greeting,
           std::function<void(Result<protocol::Welcome>)> done);
void greet(const std::shared_ptr<protocol::Link>& link, const std::string& software,
           const std::string& secret, std::function<void(Result<protocol::Welcome>)> done);

}  // namespace fedge::client
