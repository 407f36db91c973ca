#include "server/live/transfers.h"

#include <algorithm>

namespace fedge::server {

const char* name_of(TransferObject object) {
  switch (object) {
    case TransferObject::kModel:
      return "model";
    case TransferObject::kControl:
      return "control";
    case TransferObject::kUpdate:
      return "update";
  }
  return "unknown";
}

void Transfers::show(const TransferFacts& facts, const std::shared_ptr<TransferCount>& count,
                     TransferWait wait) {
  const Mark now{now_(), count->done.load(std::memory_order_relaxed)};
  const UnixSeconds date = calendar_now();
  const std::lock_guard lock(mutex_);
  if (count->number == 0) {
    count->number = ++last_;
    entries_.emplace(last_, Entry{facts, count, wait, date, now, now, now.at, count->requests});
    return;
  }
  Entry& entry = entries_.at(count->number);
  if (entry.wait == wait) return;
  entry.wait = wait;
  entry.since = date;
  entry.before = entry.last = now;
}

void Transfers::hide(TransferCount& count) {
  const std::uint64_t number = std::exchange(count.number, 0);
  const std::lock_guard lock(mutex_);
  entries_.erase(number);
}

bool Transfers::is_over(Entry& entry, Clock::time_point now) {
  const std::uint64_t requests = std::exchange(entry.requests, entry.count->requests);
  if (entry.facts.object == TransferObject::kUpdate || entry.count->busy || entry.requests != requests)
    entry.active = now;
  return now - entry.active >= kQuiet;
}

void Transfers::look() {
  const Clock::time_point now = now_();
  const std::lock_guard lock(mutex_);
  for (auto one = entries_.begin(); one != entries_.end();) {
    Entry& entry = one->second;
    if (is_over(entry, now)) {
      entry.count->number = 0;
      one = entries_.erase(one);
      continue;
    }
    if (now - entry.last.at >= kSpan) {
      entry.before = entry.last;
      entry.last = {now, entry.count->done.load(std::memory_order_relaxed)};
    }
    ++one;
  }
}

std::vector<Transfers::Listed> Transfers::list(std::uint64_t after, std::size_t most,
                                               const std::function<bool(const TransferFacts&)>& fits) const {
  constexpr double kShortest = 1;  // seconds over which a rate means something
  const Clock::time_point now = now_();
  std::vector<Listed> list;
  const std::lock_guard lock(mutex_);
  for (auto one = entries_.upper_bound(after); one != entries_.end() && list.size() < most; ++one) {
    const Entry& entry = one->second;
    if (!fits(entry.facts)) continue;
    Listed listed{one->first, entry.facts, entry.count->done.load(std::memory_order_relaxed), entry.wait,
                  entry.since};
    const double passed = std::chrono::duration<double>(now - entry.before.at).count();
    if (entry.wait == TransferWait::kNone && passed >= kShortest)
      listed.rate = static_cast<double>(listed.done - entry.before.done) / passed;
    list.push_back(std::move(listed));
  }
  return list;
}

void Transfer::wait(TransferWait reason) {
  if (!ended_) all_->show(facts_, count_, reason);
}

void Transfer::move(std::uint64_t before) {
  if (ended_) return;
  reach(before);
  all_->show(facts_, count_, TransferWait::kNone);
}

void Transfer::reach(std::uint64_t end) {
  const std::uint64_t done = std::min(end, facts_.bytes);
  if (done > count_->done.load(std::memory_order_relaxed))
    count_->done.store(done, std::memory_order_relaxed);
}

void Transfer::requested() {
  count_->busy = true;
  ++count_->requests;
  if (count_->number == 0) move();
}

void Transfer::sent(std::uint64_t end) {
  count_->busy = false;
  reach(end);
  if (count_->done.load(std::memory_order_relaxed) == facts_.bytes) this->end();
}

void Transfer::end() {
  if (count_->number != 0) all_->hide(*count_);
  ended_ = true;
}

std::shared_ptr<Transfer> RunTransfers::open(ClientId client, TaskId task, TransferObject object,
                                             std::uint64_t bytes) {
  auto transfer =
      std::make_shared<Transfer>(all_, TransferFacts{run_, project_, client, task, object, bytes});
  auto& place = open_[{client, object}];
  if (place) place->end();
  place = transfer;
  return transfer;
}

std::shared_ptr<Transfer> RunTransfers::find(ClientId client, TransferObject object) const {
  const auto known = open_.find({client, object});
  return known == open_.end() ? nullptr : known->second;
}

void RunTransfers::end(ClientId client, TransferObject object) {
  if (const auto transfer = open_.extract({client, object}); !transfer.empty()) transfer.mapped()->end();
}

void RunTransfers::end(ClientId client) {
  for (const auto object : {TransferObject::kModel, TransferObject::kControl, TransferObject::kUpdate})
    end(client, object);
}

void RunTransfers::end_all() {
  for (const auto& [key, transfer] : std::exchange(open_, {})) transfer->end();
}

}  // namespace fedge::server
