// MessageAllowance bounds how many messages of a client reach the engine, and so the journal and the log.
// An honest client only reacts: it answers a run's description, and offers or fails a task. So each
// connection and each task grants a few messages, of which at most kSaved accumulate. Records are limited
// by the run's record interval, and requests for its tokenizer by the number of its parts. A client above its
// allowance is told so and disconnected; ConnectRate bounds how soon it returns. Pure; about 100 bytes for
// each enrolled client that ever connected.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>

#include "core/ids.h"
#include "core/time.h"
#include "server/coordinator/connect_rate.h"

namespace fedge::server {

class MessageAllowance {
 public:
  // Messages granted per connection and per task; an honest client needs one or two.
  static constexpr int kForConnection = 4;
  static constexpr int kForTask = 4;
  static constexpr int kSaved = 16;
  static constexpr int kRecordsAtOnce = 16;

  // `record_every` is a client's record interval; it may publish twice as often. `parts`: of the run's
  // tokenizer.
  MessageAllowance(Duration record_every, std::size_t parts)
      : parts_(parts), records_(kRecordsAtOnce, record_every / 2) {}

  void connected(ClientId client) {
    grant(client, kForConnection);
    parts_left_.insert_or_assign(client, parts_);
  }
  void asked(ClientId client) { grant(client, kForTask); }
  // Returns whether the client may send this message, and counts it if so.
  bool answer(ClientId client) {
    int& left = left_[client];
    if (left == 0) return false;
    --left;
    return true;
  }
  bool record(ClientId client, Time now) { return records_.allow(client, now); }
  // Whether the client may ask for a part of the tokenizer: for as many as it has on each connection.
  bool part(ClientId client) {
    std::size_t& left = parts_left_[client];
    if (left == 0) return false;
    --left;
    return true;
  }

 private:
  void grant(ClientId client, int messages) {
    int& left = left_[client];
    left = std::min(left + messages, kSaved);
  }

  std::map<ClientId, int> left_;
  std::size_t parts_;
  std::map<ClientId, std::size_t> parts_left_;
  ConnectRate records_;
};

}  // namespace fedge::server
