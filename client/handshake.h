// The first exchange on a fresh link, from the client's side: Hello out, Welcome or Goodbye back.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "protocol/messages.h"
#include "protocol/session/link.h"

namespace fedge::client {

// Sends Hello (with the join secret, if any) and calls done once with the coordinator's answer. On
// success the link is authorised; its callbacks are the caller's again from then on.
void greet(const std::shared_ptr<protocol::Link>& link, const std::string& software,
           const std::string& secret, std::function<void(Result<protocol::Welcome>)> done);

}  // namespace fedge::client
