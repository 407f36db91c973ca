#include "tests/unit/privacy/secure_session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <span>
#include <variant>

namespace fedge::privacy {

TestSession::TestSession(std::uint32_t members, Plan plan) : plan_(std::move(plan)), members_(members) {
  plan_.last.resize(members, Last::kAll);
  plan_.trained.resize(members, Coverage::all(plan_.parameters));
  const protocol::SecureSession session{RunId(77), RoundNumber(3), TrackId(), plan_.attempt};
  std::vector<SecureServer::Member> known;
  for (std::uint32_t i = 0; i < members; ++i) {
    std::array<std::uint8_t, 32> seed{};
    seed[0] = static_cast<std::uint8_t>(i);
    seed[1] = static_cast<std::uint8_t>(i >> 8);
    identities_.push_back(SecretKey::from_seed(seed));
    known.push_back({id(i), identities_.back().public_key(), plan_.trained[i]});
  }
  server_.emplace(SecureServer::Terms{.session = session, .rules = plan_.rules}, known, Time());
  for (std::uint32_t i = 0; i < members; ++i) clients_.push_back(make_client(i, session));
}

template <class Step>
void TestSession::step(const Step& take) {
  std::vector<SecureServer::Effect> effects;
  take(effects);
  for (const auto& effect : effects) perform(effect);
}

std::vector<TestSession::Word> TestSession::update(std::uint32_t member) const {
  Rng rng = Rng(5).fork("update", member);
  std::vector<Word> words(plan_.parameters);
  for (std::size_t p = 0; p < words.size(); ++p) {
    const Word value = rng.next_u32();
    if (plan_.trained[member].contains(p)) words[p] = value;
  }
  return words;
}

TestSession::Outcome TestSession::run() {
  for (std::uint32_t i = 0; i < members_; ++i) {
    if (plan_.last[i] == Last::kNothing) {
      drop(i);
      continue;
    }
    std::vector<SecureClient::Effect> effects;
    clients_[i]->start(effects);
    perform(i, effects);
  }
  settle();
  for (int waits = 0; !done_ && waits < 10; ++waits) {
    if (agreed_ && !summed_) {
      sum();
    } else if (const auto deadline = server_->next_deadline()) {
      now_ = *deadline;
      step([&](auto& effects) { server_->expired(now_, effects); });
    }
    settle();
  }
  CHECK(done_);
  return outcome_;
}

void TestSession::tell(std::uint32_t member, const ToClient& message) {
  std::vector<SecureClient::Effect> effects;
  std::visit([&](const auto& specific) { clients_[member]->receive(specific, effects); }, message);
  perform(member, effects);
  settle();
}

std::unique_ptr<SecureClient> TestSession::make_client(std::uint32_t i,
                                                       const protocol::SecureSession& session) {
  MemberTerms terms;
  terms.session = session;
  terms.self = id(i);
  terms.parameters = plan_.parameters;
  terms.trained = plan_.trained[i];
  terms.rules = plan_.rules;
  terms.fast_aes = std::ranges::find(plan_.slow_aes, id(i)) == plan_.slow_aes.end();
  terms.check_pinned_key = [this](ClientId client, const PublicKey& key) {
    return check_pinned_key ? check_pinned_key(client, key) : Result<void>();
  };
  return std::make_unique<SecureClient>(std::move(terms), identities_[i],
                                        [this](std::span<std::uint8_t> out) {
                                          for (std::uint8_t& byte : out)
                                            byte = static_cast<std::uint8_t>(entropy_.next_u32());
                                        });
}

void TestSession::drop(std::uint32_t member) {
  if (plan_.links_break)
    pending_.push_back(
        [this, member] { step([&](auto& effects) { server_->left(id(member), now_, effects); }); });
}

bool TestSession::silent_after(std::uint32_t member, Last step) {
  if (plan_.last[member] > step) return false;
  if (plan_.last[member] == step) drop(member);
  return true;
}

void TestSession::perform(std::uint32_t member, const std::vector<SecureClient::Effect>& effects) {
  for (const auto& effect : effects) {
    if (const auto* stopped = std::get_if<SecureClient::Stopped>(&effect))
      outcome_.stopped.emplace(id(member), stopped->error);
    if (std::holds_alternative<SecureClient::Ready>(effect)) ready_.push_back(member);
    const auto* send = std::get_if<SecureClient::Send>(&effect);
    if (send == nullptr) continue;
    const std::size_t kind = send->message.index();
    constexpr Last kNeeds[] = {Last::kKeys, Last::kShares, Last::kConsent, Last::kAll};
    if (plan_.last[member] < kNeeds[kind]) continue;
    pending_.push_back([this, member, message = send->message] {
      const auto arrives = to_server(id(member), message);
      if (!arrives) return;
      step([&](auto& effects_of) {
        std::visit([&](const auto& specific) { server_->receive(id(member), specific, now_, effects_of); },
                   *arrives);
      });
    });
    static_cast<void>(silent_after(member, kNeeds[kind]));
    if (anew_ == std::pair(member, kind)) begin_anew(member);
  }
}

void TestSession::begin_anew(std::uint32_t member) {
  anew_.reset();
  std::erase(ready_, member);
  clients_[member] = make_client(member, server_->session());
  std::vector<SecureClient::Effect> effects;
  clients_[member]->start(effects);
  perform(member, effects);
}

void TestSession::perform(const SecureServer::Effect& effect) {
  if (const auto* send = std::get_if<SecureServer::Send>(&effect)) {
    pending_.push_back([this, client = send->client, message = send->message] {
      const auto arrives = to_client(client, message);
      if (!arrives || plan_.last[member(client)] == Last::kNothing) return;
      std::vector<SecureClient::Effect> effects;
      std::visit([&](const auto& specific) { clients_[member(client)]->receive(specific, effects); },
                 *arrives);
      perform(member(client), effects);
    });
  } else if (const auto* excluded = std::get_if<SecureServer::Excluded>(&effect)) {
    outcome_.excluded.emplace(excluded->client, excluded->reason);
  } else if (std::holds_alternative<SecureServer::Agreed>(effect)) {
    agreed_ = true;
  } else if (const auto* failed = std::get_if<SecureServer::Failed>(&effect)) {
    outcome_.failure = failed->error;
    done_ = true;
  } else {
    unmask();
  }
}

void TestSession::settle() {
  while (!pending_.empty()) {
    const auto next = std::move(pending_.front());
    pending_.pop_front();
    next();
  }
}

void TestSession::sum() {
  summed_ = true;
  Sequential here;
  const Coverage all = Coverage::of(server_->cells());
  sums_.assign(all.count(), 0);
  scalars_.assign(server_->cells().size() + 1, 0);
  for (const std::uint32_t i : ready_) {
    if (plan_.last[i] < Last::kMasked) {
      drop(i);
      continue;
    }
    const Masking masking = clients_[i]->masking();
    std::vector<Word> words;
    const std::vector<Word> own = update(i);
    for (const Range& range : masking.coverage().ranges())
      for (std::size_t p = range.begin; p < range.end; ++p)
        words.push_back(masking.contributes().contains(p) ? own[p] : 0);
    std::vector<std::uint64_t> scalars(scalars_.size());
    for (std::size_t c = 0; c < masking.cells().size(); ++c)
      if (masking.contributes().contains(masking.cells()[c].begin)) scalars[c] = weight(i);
    scalars.back() = 1;
    masking.apply(words, scalars, here);
    clients_[i]->masked();
    seen[id(i)] = words;
    std::size_t at = 0;
    std::size_t position = 0;
    for (const Range& range : all.ranges())
      for (std::size_t p = range.begin; p < range.end; ++p, ++position)
        if (masking.coverage().contains(p)) sums_[position] += words[at++];
    for (std::size_t s = 0; s < scalars.size(); ++s) scalars_[s] += scalars[s];
    outcome_.survivors.push_back(id(i));
    if (plan_.last[i] == Last::kMasked) drop(i);
  }
  settle();
  step([&](auto& effects) { server_->summed(outcome_.survivors, now_, effects); });
}

void TestSession::unmask() {
  done_ = true;
  Sequential here;
  const auto recovered = server_->take_unmasking().recover(here);
  if (!recovered) {
    outcome_.failure = recovered.error();
    return;
  }
  outcome_.bad_shares = recovered->bad_shares;
  recovered->masks.take_away(sums_, scalars_, here);
  outcome_.sums.assign(sums_.begin(), sums_.end());
  outcome_.scalars = scalars_;
}

void check_sum(TestSession& session, const TestSession::Outcome& outcome,
               const std::vector<Coverage>& trained) {
  const Coverage all = Coverage::of(session.server().cells());
  std::size_t position = 0;
  std::size_t wrong = 0;
  std::vector<std::vector<TestSession::Word>> updates;
  for (const ClientId client : outcome.survivors)
    updates.push_back(session.update(TestSession::member(client)));
  for (const Range& range : all.ranges())
    for (std::size_t p = range.begin; p < range.end; ++p, ++position) {
      TestSession::Word sum = 0;
      for (const auto& update : updates) sum += update[p];
      if (outcome.sums[position] != sum) ++wrong;
    }
  CHECK(position == outcome.sums.size());
  CHECK(wrong == 0);
  for (std::size_t c = 0; c < session.server().cells().size(); ++c) {
    std::uint64_t weight = 0;
    for (const ClientId client : outcome.survivors) {
      const std::uint32_t member = TestSession::member(client);
      if (trained.empty() || trained[member].contains(session.server().cells()[c].begin))
        weight += TestSession::weight(member);
    }
    CHECK(outcome.scalars[c] == weight);
  }
  CHECK(outcome.scalars.back() == outcome.survivors.size());
}

}  // namespace fedge::privacy
