# shellcheck shell=bash
# Mutants of block-coordinate training, and of training for the next round.

mutant part-of-any-round 'Overlap: a client that missed a round goes on from what it kept earlier'
file client/local/overlapping_work.cc
old 'memory.round.value() + 1 != order.round.value()'
new 'memory.round >= order.round'
caught_by unit_client 'overlap: a client that missed'

mutant part-forgotten 'Overlap: a client begins with the model of the coordinator'
file client/local/overlapping_work.cc
old 'memory.round.value() + 1 != order.round.value()'
new 'memory.round != order.round'
caught_by unit_client 'overlap: clients train from'

mutant stale-is-local 'Overlap: stale clients go on from their own updates'
file client/local/overlapping_work.cc
old 'training.overlap == learn::OverlapKind::kLocal)'
new 'training.overlap != learn::OverlapKind::kNone)'
caught_by unit_client 'overlap: clients train from'

mutant own-update-unrounded 'Overlap: the own update counts in other bits than on the coordinator'
file aggregation/accumulator.cc
old 'static_cast<double>(model[i]) + static_cast<double>(sums.data()[i]) / divisor'
new 'static_cast<double>(model[i]) + static_cast<double>(values[i]) + 0 * divisor'
caught_by unit_aggregation 'mean: a model that is moved by one'

mutant late-update-counts 'Overlap: a client whose update did not count offers what it trained after it'
file client/engine/run_book.cc
old 'request.last_round == expected.last_round &&'
new 'request.run == expected.run &&'
caught_by unit_client 'overlap: a task that is not the expected one'

mutant evaluation-ends-ahead 'Overlap: an evaluation throws away what the client has trained early'
file client/engine/run_book.cc
old '  if (task->kind != TaskKind::kTraining) return;
  ahead.reset();'
new '  ahead.reset();
  if (task->kind != TaskKind::kTraining) return;'
caught_by unit_client 'overlap: an evaluation waits'

mutant refused-goes-on 'Overlap: a client whose update is refused goes on training'
file client/client_engine.cc
old 'if (!verdict.accepted) drop_ahead(*run, effects);'
new 'if (verdict.accepted) publish(*run, Time(), effects);'
caught_by unit_client 'overlap: a client whose update does not count'

mutant trains-in-vain 'Overlap: clients train early for rounds in which they may not be drawn'
file server/engine/round_selection.cc
old 'all_drawn_ = wanted_ == pool.size();'
new 'all_drawn_ = true;'
caught_by unit_server 'overlap: a task says what is trained next'

mutant epochs-meet 'Blocks: two permutations may meet at the same block'
file aggregation/planners/block.cc
old 'order[meets ? 1 - place : place]'
new 'order[meets && count == 0 ? 1 - place : place]'
caught_by unit_aggregation 'blocks: no schedule'

mutant former-not-excluded 'Blocks: importance counts the norm of the block that was trained last'
file aggregation/planners/block.cc
old 'if (block != former) total +='
new 'total +='
caught_by unit_aggregation 'blocks: importance follows'

mutant early-from-changing 'Overlap: a client trains early what its present task changes'
file client/engine/run_book.cc
old 'task->next.empty() || !task->next.intersect(task->coverage).empty()'
new 'task->next.empty()'
caught_by unit_client 'overlap: nothing is trained early'
