# shellcheck shell=bash
# Mutants of the strategies against client drift, and of the losses that weigh clients.

mutant contrast-away 'MOON: pulls away from the model of the round'
file learn/objectives/contrast.cc
old '{std::pair(previous, 1.0), std::pair(round, -1.0)}'
new '{std::pair(previous, -1.0), std::pair(round, 1.0)}'
caught_by unit_learn 'contrast: training is descent'

mutant contrast-along 'MOON: the gradient has a part along the representation'
file learn/objectives/contrast.cc
old ' - s * static_cast<double>(z[i]) / norm));'
new ' - 0.5 * s * static_cast<double>(z[i]) / norm));'
caught_by unit_learn 'contrast: '

mutant contrast-row 'MOON: the first direction for every sample'
file learn/objectives/contrast.cc
old '                              static_cast<std::size_t>(found - samples_.begin()) * size_);'
new '                              static_cast<std::size_t>(found - found) * size_);'
caught_by unit_learn 'contrast: '

mutant contrast-goes-on 'MOON: a training without a last model uses the directions of the one before'
file learn/trainer.cc
old '  workspace_->contrast = contrasts ? &term_ : nullptr;'
new '  if (contrasts) workspace_->contrast = &term_;'
caught_by unit_learn 'contrast: without a last model'

mutant contrast-unscaled 'MOON: a step in place takes the gradient without the learning rate'
file learn/layers/network.cc
old 'output(below_head(), space), representation_, scale,'
new 'output(below_head(), space), representation_, scale > 0 ? scale : -1.0F,'
caught_by unit_learn 'contrast: training is descent'

mutant moon-forgets 'MOON: a client contrasts with its first model for ever'
file client/local/local_work.cc
old '  memory.personal.assign(model.begin(), model.end());'
new '  if (memory.personal.empty()) memory.personal.assign(model.begin(), model.end());'
caught_by unit_client 'moon: '

mutant moon-any-size 'MOON: a kept model of another size is used'
file client/local/local_work.cc
old '    if (size == 0 || size == model.size()) return {};'
new '    if (size == 0 || size <= model.size()) return {};'
caught_by unit_client 'objectives: what a client has kept'

mutant feddyn-no-sum 'FedDyn: a client forgets its earlier updates'
file client/local/local_work.cc
old '      memory.control[parameter + i] +='
new '      memory.control[parameter + i] ='
caught_by unit_client 'feddyn: '

mutant feddyn-share 'FedDyn: the coordinator counts every round as one of all clients'
file aggregation/server_optimizers/server_optimizer.cc
old '  void begin(double share) override { share_ = share; }'
new '  void begin(double share) override { share_ = share > 0 ? 1 : 0; }'
caught_by unit_aggregation 'dynamic: '

mutant feddyn-share-of-round 'FedDyn: the share is of the clients of a round'
file run/track_model.cc
old '                    static_cast<double>(config_->task.data.partition.clients));'
new '                    static_cast<double>(contributors(*config_)));'
caught_by unit_sim 'feddyn: '

mutant feddyn-half 'FedDyn: clients correct, the coordinator does not'
file run/recipe.cc
old '  if (dynamic == run.strategy.sums_clients) return;'
new '  if (dynamic || !run.strategy.sums_clients) return;'
caught_by unit_run 'recipe: feddyn'

mutant feddyn-lost 'FedDyn: a client that has lost its sum begins again without it'
file client/local/local_work.h
old '  bool corrects() const { return scaffold() || dynamic(); }'
new '  bool corrects() const { return scaffold(); }'
caught_by integration_federation 'scaffold: a client without'

mutant qfedavg-power 'q-FedAvg: the step is not divided by the norms'
file aggregation/aggregators/qfedavg.cc
old '      total += weight + q_ * lipschitz_ * weight / losses[k] * norms[k] * norms[k];'
new '      total += weight + q_ * lipschitz_ * weight / losses[k] * norms[k];'
caught_by unit_aggregation 'qfedavg: the step'

mutant qfedavg-order 'q-FedAvg: of two updates of a client the order of arrival matters'
file aggregation/aggregators/robust/kept_updates.cc
old '    return std::tie(kept.client, kept.norm, kept.weight, kept.factor, kept.loss);'
new '    return std::tie(kept.client);'
caught_by unit_aggregation 'qfedavg: the order'

mutant qfedavg-trained-loss 'q-FedAvg: clients report the loss of the steps'
file learn/task.cc
old '    if (!spec_.training.start_loss || assignment.personal || result.steps == 0) return result;'
new '    if (!spec_.training.start_loss || assignment.personal || result.steps > 0) return result;'
caught_by unit_client 'start_loss: '

mutant qfedavg-no-loss 'q-FedAvg: the coordinator drops the loss that a client reported'
file server/coordinator/uploads.cc
old '          .loss = accepted.loss,'
new '          .loss = 0,'
caught_by integration_programs 'modes: every strategy'

mutant qfedavg-private 'q-FedAvg: beside noise, clients report losses without it'
file run/recipe.cc
old '  if (run.privacy.on())
    root.fail("differential_privacy",
              "the guarantee does not cover the losses'
new '  if (run.privacy.on() && run.secure.on)
    root.fail("differential_privacy",
              "the guarantee does not cover the losses'
caught_by unit_run 'recipe: qfedavg'
