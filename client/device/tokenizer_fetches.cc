#include "client/device/tokenizer_fetches.h"

#include <utility>

#include "core/crypto/sha256.h"

namespace fedge::client {

void TokenizerFetches::fetch(RunId run, const std::string& hash, Done done) {
  Fetch& fetch = fetches_[run];
  fetch = {.hash = hash, .done = std::move(done)};
  ask(run, fetch);
}

void TokenizerFetches::ask(RunId run, const Fetch& fetch) const {
  send_(protocol::TokenizerRequest{run, static_cast<std::uint32_t>(fetch.bytes.size())});
}

bool TokenizerFetches::received(const protocol::Message& message) {
  if (const auto* described = std::get_if<protocol::RunDescription>(&message)) {
    const auto found = fetches_.find(described->run);
    if (found != fetches_.end()) ask(described->run, found->second);
    return false;
  }
  const auto* part = std::get_if<protocol::TokenizerPart>(&message);
  if (part == nullptr) return false;
  take(*part);
  return true;
}

bool TokenizerFetches::fits(const Fetch& fetch, const protocol::TokenizerPart& part) {
  return part.offset == fetch.bytes.size() && (fetch.total == 0 || part.total == fetch.total);
}

void TokenizerFetches::take(const protocol::TokenizerPart& part) {
  const auto found = fetches_.find(part.run);
  if (found == fetches_.end()) return;  // of a run that has ended
  Fetch& fetch = found->second;
  if (part.offset < fetch.bytes.size()) return;  // a connection may bring an answer twice
  const bool next = fits(fetch, part);
  if (next) {
    fetch.total = part.total;
    fetch.bytes += part.bytes;
    if (fetch.bytes.size() < fetch.total) return ask(part.run, fetch);
  }
  const Fetch ended = std::move(fetches_.extract(found).mapped());
  if (!next)
    return ended.done(invalid("the coordinator sent another part of the run's tokenizer than the next"));
  if (to_hex(sha256(ended.bytes)) != ended.hash)
    return ended.done(invalid("the tokenizer that the coordinator sent does not have the hash of the run's"));
  ended.done(ended.bytes);
}

}  // namespace fedge::client
