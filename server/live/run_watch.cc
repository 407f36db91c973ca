#include "server/live/run_watch.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/node.h"
#include "server/access/calendar.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostEnded = 8;  // tasks of a client that are shown after their end

}  // namespace

const char* name_of(TaskStage stage) {
  switch (stage) {
    case TaskStage::kAway:
      return "away";
    case TaskStage::kTraining:
      return "training";
    case TaskStage::kUploading:
      return "uploading";
    case TaskStage::kAccepted:
      return "accepted";
    case TaskStage::kRefused:
      return "refused";
    case TaskStage::kFailed:
      return "failed";
    case TaskStage::kLost:
      return "lost";
    case TaskStage::kLate:
      return "late";
    case TaskStage::kUnneeded:
      return "unneeded";
  }
  return "unknown";
}

const char* name_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::kTraining:
      return "training";
    case TaskKind::kEvaluation:
      return "evaluation";
    case TaskKind::kStatistics:
      return "statistics";
  }
  return "unknown";
}

void RunWatch::set(ClientId client, Member member) {
  members_.insert_or_assign(client, std::move(member));
  ++version_;
}

void RunWatch::note(Time now) {
  now_ = now;
  noted_ = std::chrono::steady_clock::now();
}

void RunWatch::linked(ClientId client, Time now) {
  const std::lock_guard lock(mutex_);
  note(now);
  set(client, {Member::State::kPreparing, "", date()});
}

void RunWatch::declined(ClientId client, const std::string& reason, Time now) {
  const std::lock_guard lock(mutex_);
  note(now);
  set(client, {Member::State::kDeclined, reason, date()});
}

void RunWatch::left(ClientId client, Time now) {
  const std::lock_guard lock(mutex_);
  note(now);
  version_ += members_.erase(client);
}

void RunWatch::secure(const SecureStage& stage, Time now) {
  const std::lock_guard lock(mutex_);
  note(now);
  secure_ = {stage, date()};
  ++version_;
}

void RunWatch::waits(const std::optional<RunEngine::Waiting>& waiting, Time now) {
  const std::lock_guard lock(mutex_);
  note(now);
  if (!waiting) {
    if (waiting_) ++version_;
    waiting_.reset();
    return;
  }
  if (waiting_ && waiting_->round == waiting->round && waiting_->clients == waiting->clients &&
      waiting_->needed == waiting->needed)
    return;
  const Time since = waiting_ ? waiting_->since : now;
  waiting_ = {waiting->round, waiting->clients, waiting->needed, since, waiting_ ? waiting_->date : date()};
  ++version_;
}

void RunWatch::begin(Ended ended, WatchRecords records) {
  const std::lock_guard lock(mutex_);
  ended_ = std::move(ended);
  records_ = std::move(records);
}

void RunWatch::not_aggregated(TaskId task) {
  const std::lock_guard lock(mutex_);
  recorder_.not_aggregated(task);
}

void RunWatch::decided(const RunEngine::Input& input, const std::vector<RunEngine::Effect>& effects,
                       Time now) {
  std::vector<WatchedTask> told;
  std::vector<std::pair<TaskId, std::vector<WatchedTask>>> tasks;
  std::vector<RoundRecord> rounds;
  {
    const std::lock_guard lock(mutex_);
    note(now);
    heard(input, now);
    recorder_.decided(input, effects, now);
    for (const RunEngine::Effect& effect : effects) carried_out(effect, now);
    for (const RunEngine::Effect& effect : effects)
      if (const auto* turn = std::get_if<RunEngine::CloseRound>(&effect)) close(*turn, now);
    told = std::exchange(told_, {});
    tasks = std::exchange(recorded_, {});
    rounds = recorder_.take();
  }
  if (!ended_) return;
  for (const WatchedTask& task : told) ended_(task);
  for (auto& [phase, closed] : tasks) records_.on_tasks(phase, std::move(closed), now);
  if (!records_.on_round) return;
  for (RoundRecord& round : rounds) records_.on_round(std::move(round), now);
}

void RunWatch::carried_out(const RunEngine::Effect& effect, Time now) {
  std::visit(
      Overloaded{
          [&](const RunEngine::Assign& work) {
            // A client that returned to its task was asked before.
            auto& task = tasks_[{work.client, work.task}];
            const bool known = task.task == work.task;
            task = {.client = work.client,
                    .task = work.task,
                    .asked = known ? task.asked : now,
                    .asked_date = known ? task.asked_date : date(),
                    .attempt = work.secure_attempt};
            forget_old(work.client);
            quarantined_.erase(work.client);
            // In a buffered run, tasks have numbers of their own.
            round_ = std::max(round_, buffered_ ? RoundNumber(1) : work.task.round);
            ++version_;
          },
          [&](const RunEngine::Fetch& fetch) {
            const auto task = tasks_.find({fetch.client, fetch.offer.task()});
            if (task == tasks_.end()) return;
            task->second.stage = TaskStage::kUploading;
            task->second.offered = now;
            task->second.bytes = fetch.offer.update.payload_size;
            ++version_;
          },
          [&](const RunEngine::Fold& fold) { end(fold.client, fold.task, TaskStage::kAccepted, {}, now); },
          [&](const RunEngine::Send& message) { sent(message, now); },
          // A secure sum that begins anew: what was accepted before is not in it.
          [&](const RunEngine::BeginSecure& sum) {
            std::erase_if(tasks_, [&](const auto& task) { return task.first.second == sum.task; });
            ++version_;
          },
          [&](const RunEngine::Finished& finished) { finish(finished.reason, now); },
          [&](const RunEngine::GiveUp& missing) {
            end_all(missing.client, "it did not return after the coordinator's restart", now);
          },
          [&](const Event& event) { take_up(event); }, [](const auto&) {}},
      effect);
}

void RunWatch::finish(const std::string& reason, Time now) {
  std::vector<WatchedTask> last;
  for (auto& [key, task] : tasks_) {
    end(key.first, key.second, TaskStage::kUnneeded, {{}, reason}, now);
    last.push_back(task);
  }
  const TaskId phase = last.empty() ? TaskId() : last.front().task;
  record(phase, std::move(last));
}

void RunWatch::record(TaskId phase, std::vector<WatchedTask> tasks) {
  if (ended_ && records_.on_tasks && !tasks.empty()) recorded_.emplace_back(phase, std::move(tasks));
}

void RunWatch::take_up(const Event& event) {
  if (event.name != "client.quarantined") return;
  const auto number = [&](std::string_view key) {
    for (const auto& [name, value] : event.fields)
      if (const auto* whole = std::get_if<std::int64_t>(&value); whole != nullptr && name == key)
        return static_cast<std::uint64_t>(*whole);
    return std::uint64_t{0};
  };
  const ClientId client(static_cast<std::uint32_t>(number("client")));
  quarantined_[client] = {client, RoundNumber(static_cast<std::uint32_t>(number("round"))), number("rounds"),
                          number("failures")};
  ++version_;
}

// In a buffered run, a client may fail again and again before the buffer closes.
void RunWatch::forget_old(ClientId client) {
  std::size_t ended = 0;
  for (auto task = tasks_.lower_bound({client, TaskId()});
       task != tasks_.end() && task->first.first == client; ++task)
    ended += has_ended(task->second.stage) ? 1U : 0U;
  for (auto task = tasks_.lower_bound({client, TaskId()});
       ended > kMostEnded && task != tasks_.end() && task->first.first == client;) {
    const bool drop = has_ended(task->second.stage);
    task = drop ? tasks_.erase(task) : std::next(task);
    ended -= drop ? 1U : 0U;
  }
}

void RunWatch::heard(const RunEngine::Input& input, Time now) {
  std::visit(Overloaded{[&](const RunEngine::ClientArrived& arrived) {
                          set(arrived.client, {Member::State::kReady, "", date()});
                        },
                        [&](const RunEngine::ClientLeft& gone) {
                          // A client that the run is no longer for stays connected, and has been declined.
                          const auto member = members_.find(gone.client);
                          if (member != members_.end() && member->second.state != Member::State::kDeclined)
                            members_.erase(member), ++version_;
                          end_all(gone.client,
                                  gone.for_good ? "the client was revoked, moved to another project, or no "
                                                  "longer has a label that the run asks for"
                                                : "the connection ended",
                                  now);
                        },
                        [&](const RunEngine::Offered& offered) {
                          const auto task = tasks_.find({offered.client, offered.offer.task()});
                          // Answers without an update, as evaluations, are not fetched. An offer of the
                          // update that is being fetched is refused.
                          if (task == tasks_.end() || task->second.offered || has_ended(task->second.stage))
                            return;
                          task->second.offered = now;
                          task->second.bytes = offered.offer.update.payload_size;
                          ++version_;
                        },
                        [&](const RunEngine::Damaged& damaged) {
                          end(damaged.client, damaged.task, TaskStage::kRefused, damaged.error, now);
                        },
                        [&](const RunEngine::Failed& failed) {
                          // The engine takes no notice of it for an update that is being fetched.
                          const auto task = tasks_.find({failed.client, failed.failure.task()});
                          if (task == tasks_.end() || task->second.stage == TaskStage::kUploading) return;
                          end(failed.client, failed.failure.task(), TaskStage::kFailed,
                              {failed.failure.code, failed.failure.reason}, now);
                        },
                        [&](const RunEngine::Restarted&) {
                          members_.clear();
                          for (auto& [key, task] : tasks_)
                            if (task.stage == TaskStage::kTraining) task.stage = TaskStage::kAway;
                          ++version_;
                        },
                        [](const auto&) {}},
             input);
}

void RunWatch::sent(const RunEngine::Send& sent, Time now) {
  if (const auto* cancel = std::get_if<protocol::CancelTask>(&sent.message)) {
    const bool late = cancel->reason.ends_with("deadline");  // the engines' word for it
    return end(sent.client, cancel->task(), late ? TaskStage::kLate : TaskStage::kUnneeded,
               {{}, cancel->reason}, now);
  }
  const auto* verdict = std::get_if<protocol::UpdateVerdict>(&sent.message);
  if (verdict == nullptr) return;
  if (verdict->accepted) return end(sent.client, verdict->task(), TaskStage::kAccepted, {}, now);
  end(sent.client, verdict->task(), TaskStage::kRefused, {verdict->code, verdict->reason}, now);
}

void RunWatch::end(ClientId client, TaskId task, TaskStage stage, const Error& why, Time now) {
  const auto found = tasks_.find({client, task});
  if (found == tasks_.end() || has_ended(found->second.stage)) return;
  WatchedTask& ended = found->second;
  ended.stage = stage;
  ended.ended = now;
  ended.code = why.code;
  ended.reason = why.message;
  if (ended_ && stage != TaskStage::kAccepted) told_.push_back(ended);
  ++version_;
}

void RunWatch::end_all(ClientId client, const char* why, Time now) {
  for (auto task = tasks_.lower_bound({client, TaskId()});
       task != tasks_.end() && task->first.first == client; ++task)
    end(client, task->first.second, TaskStage::kLost, {ErrorCode::kUnavailable, why}, now);
}

void RunWatch::close(const RunEngine::CloseRound& turn, Time now) {
  std::vector<WatchedTask> closed;
  if (turn.round != last_round_) last_.clear();
  last_round_ = turn.round;
  secure_.reset();
  round_ = buffered_ ? RoundNumber(turn.round.value() + 1) : std::max(round_, turn.round);
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    if (!buffered_ && task->first.second == turn.task())
      end(task->first.first, task->first.second, TaskStage::kUnneeded, {{}, "the round was closed"}, now);
    if (!has_ended(task->second.stage)) {
      ++task;
      continue;
    }
    if (ended_ && task->second.stage == TaskStage::kAccepted) told_.push_back(task->second);
    if (records_.on_tasks) closed.push_back(task->second);
    last_.push_back(std::move(task->second));
    task = tasks_.erase(task);
  }
  record(turn.task(), std::move(closed));
  ++version_;
}

bool RunWatch::awaits(ClientId client) const {
  const std::lock_guard lock(mutex_);
  for (auto task = tasks_.lower_bound({client, TaskId()});
       task != tasks_.end() && task->first.first == client; ++task)
    if (!has_ended(task->second.stage) || task->second.stage == TaskStage::kLost) return true;
  return false;
}

LiveRun RunWatch::progress() const {
  const std::lock_guard lock(mutex_);
  LiveRun progress{.now = present(), .round = round_, .last_round = last_round_};
  for (const auto& [key, task] : tasks_) progress.tasks.push_back(task);
  progress.last = last_;
  for (const auto& [client, member] : members_) {
    if (member.state == Member::State::kReady) ++progress.ready;
    if (member.state == Member::State::kPreparing) ++progress.preparing;
    if (member.state == Member::State::kDeclined)
      progress.declined.push_back({client, member.reason, member.date});
  }
  for (const auto& [client, one] : quarantined_)
    if (lasts(one)) progress.quarantined.push_back(one);
  progress.secure = secure_now();
  progress.waiting = waiting_;
  return progress;
}

// In a buffered run, it lasts until the client's next task.
bool RunWatch::lasts(const LiveRun::Quarantined& one) const {
  return members_.contains(one.client) && (buffered_ || round_.value() <= one.round.value() + one.rounds);
}

std::optional<std::pair<const char*, std::string>> RunWatch::standing(ClientId client) const {
  const std::lock_guard lock(mutex_);
  const auto member = members_.find(client);
  if (member == members_.end()) return std::nullopt;
  const char* state = "preparing";
  if (member->second.state == Member::State::kReady) state = "ready";
  if (member->second.state == Member::State::kDeclined) state = "declined";
  return std::pair(state, member->second.reason);
}

std::int64_t RunWatch::date() const { return ended_ ? calendar_now() : 0; }

Time RunWatch::present() const { return now_ + (std::chrono::steady_clock::now() - noted_); }

Time RunWatch::now() const {
  const std::lock_guard lock(mutex_);
  return present();
}

std::optional<LiveRun::Waiting> RunWatch::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

RunWatch::Counts RunWatch::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts{.round = round_};
  for (const auto& [client, one] : quarantined_) counts.quarantined += lasts(one) ? 1U : 0U;
  const auto secure = secure_now();
  if (secure) counts.secure = secure->stage.stage;
  if (secure) counts.secure_awaited = secure->stage.awaited.size();
  for (const auto& [key, task] : tasks_) ++counts.tasks[task.stage];
  for (const auto& [client, member] : members_) {
    if (member.state == Member::State::kReady) ++counts.ready;
    if (member.state == Member::State::kDeclined) ++counts.declined;
  }
  return counts;
}

std::uint64_t RunWatch::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

}  // namespace fedge::server
