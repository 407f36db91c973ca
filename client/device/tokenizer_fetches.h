// TokenizerFetches: fetches the tokenizers of runs from the coordinator, part after part (docs/PROTOCOL.md,
// "Tokenizers"). A lost connection costs the part that was on its way: once the coordinator describes the run
// again, the fetch goes on. Pure but for `send`; on the io_context's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "protocol/messages.h"

namespace fedge::client {

class TokenizerFetches {
 public:
  // `send`: to the coordinator; drops the message without a connection.
  using Send = std::function<void(const protocol::Message&)>;
  using Done = std::function<void(Result<std::string>)>;
  explicit TokenizerFetches(Send send) : send_(std::move(send)) {}

  // `hash`: SHA-256 of the tokenizer, in hexadecimal. Calls `done` once, unless the fetch is forgotten first.
  // kInvalid: the coordinator sent something else than the parts of this tokenizer.
  void fetch(RunId run, const std::string& hash, Done done);
  // Takes a part of a tokenizer; false: it is another message. Looks at runs that are described again.
  bool received(const protocol::Message& message);
  void forget(RunId run) { fetches_.erase(run); }

 private:
  struct Fetch {
    std::string hash;
    Done done;
    std::string bytes = {};   // so far
    std::uint32_t total = 0;  // 0: not known yet
  };
  void ask(RunId run, const Fetch& fetch) const;
  // Whether the part is the next one.
  static bool fits(const Fetch& fetch, const protocol::TokenizerPart& part);
  void take(const protocol::TokenizerPart& part);

  Send send_;
  std::map<RunId, Fetch> fetches_;
};

}  // namespace fedge::client
