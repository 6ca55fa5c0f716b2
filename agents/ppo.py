"""PPO of Stable-Baselines3 with a faster update, mirrored data and gradients clipped apart for actor and critic.

With ``overlap`` the update by one rollout runs on another core while the next one is collected, with the policy before
that update. Ratios count from the policy that an update begins with: counted from the one that acted, the update
between would use up their range (Hilton et al., arXiv:2110.00641). Which weights act is settled between rollouts, so
that a run gives the same numbers at any speed of the two.

What an update computes is that of Schulman et al., "Proximal Policy Optimization Algorithms" (arXiv:1707.06347), eq. 7
and 9, in the form of SB3's ``PPO.train``, to rounding: the gradients of the loss by the networks' outputs are written
out, minibatches are gathered from one table, and only ``target_kl`` reads anything back before the update ends.

A mirrored sample has the same log-probability, advantage and return as the sample that it comes from (Abdolhosseini
et al., "On Learning Symmetric Locomotion", MIG 2019, section 3.1); ``snake_gym.interface.mirror`` says what is mirrored
how.
"""

from __future__ import annotations

import copy
import math
import typing
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.utils import explained_variance

from snake_gym.interface.mirror import Reflection

ACTOR, CRITIC = "actor", "critic"
_ADAM = {"eps": 1e-5, "fused": True}
"""Settings of the optimiser: those of SB3, in one kernel."""


class Terms(NamedTuple):
    """Means over a minibatch, each a tensor ()."""

    policy_loss: torch.Tensor
    value_loss: torch.Tensor
    kl: torch.Tensor
    """Approximate Kullback-Leibler divergence (http://joschu.net/blog/kl-approx.html)."""
    clip_fraction: torch.Tensor
    entropy: torch.Tensor


class Update(NamedTuple):
    """What an update by one rollout is made of, taken before the next rollout is collected."""

    table: torch.Tensor
    """Rows of observation, action, log-probability, advantage, return and value."""
    clip: float
    clip_vf: float | None
    explained_variance: float


def multiplies_bfloat16(device: torch.device) -> bool:
    """Return whether matrices in bfloat16 are faster; a processor without instructions for them is ten times slower."""
    return device.type != "cpu" or any(on for name, on in torch.cpu.get_capabilities().items() if "bf16" in name)


class PPO(stable_baselines3.PPO):
    """SB3's PPO for Gaussian policies of plain layers.

    ``max_grad_norm``: one bound of the gradient, or bounds of its parts {actor, critic}. ``mirror``: share of each
    minibatch that is mirrored, by ``reflection``. ``bfloat16``: the update multiplies matrices with eight bits of
    mantissa where the processor can (``multiplies_bfloat16``); weights, losses and what the policy does in the env stay
    in float32. ``overlap``: update while the next rollout is collected. A policy with state-dependent exploration is
    updated by SB3's code.
    """

    reflection: Reflection | None = None
    """How observations and actions, all parts in a row, look in a mirror."""

    def __init__(
        self,
        *args: Any,
        max_grad_norm: float | Mapping[str, float] = 0.5,
        mirror: float = 0.0,
        bfloat16: bool = False,
        overlap: bool = False,
        policy_kwargs: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.mirror, self.bfloat16, self.overlap = mirror, bfloat16, overlap
        norm: Any = dict(max_grad_norm) if isinstance(max_grad_norm, Mapping) else max_grad_norm
        settings["max_grad_norm"], settings["policy_kwargs"] = norm, {"optimizer_kwargs": dict(_ADAM)}
        settings["policy_kwargs"] |= policy_kwargs or {}
        super().__init__(*args, **settings)
        asked = {
            "mirror": mirror > 0.0, "max_grad_norm {actor, critic}": isinstance(norm, dict), "bfloat16": bfloat16,
            "overlap": overlap,
        }  # fmt: skip
        if self.use_sde and any(asked.values()):
            which = next(name for name in asked if asked[name])
            raise ValueError(f"{which} needs noise that does not depend on the state; expected use_sde false")
        self._casts = bfloat16 and multiplies_bfloat16(self.device)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.learner = copy.deepcopy(self.policy) if self.overlap else self.policy
        """What updates change: the policy itself, or with ``overlap`` the one that acts from the next rollout on."""
        self._running: tuple[Future[list[list[Terms]]], Update] | None = None
        """The update that runs while a rollout is collected."""

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        names, variables = super()._get_torch_save_params()
        return ["policy", "learner", "learner.optimizer"] if self.overlap else names, variables

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "learner", "_running"]

    def get_parameters(self) -> dict[str, dict[str, Any]]:
        """Return the parameters once no update runs."""
        self._finish()
        return super().get_parameters()

    def train(self) -> None:
        """Update the policy by the rollout in the buffer, or begin to."""
        if self.use_sde:
            super().train()
            return
        self._finish()
        update = self._begin()
        if self.overlap and self.num_timesteps < self._total_timesteps:
            self._running = _worker(torch.get_num_threads()).submit(self._improve, update), update
            return
        self._record(self._improve(update), update)
        if self.overlap:
            self.policy.load_state_dict(self.learner.state_dict())

    def _begin(self) -> Update:
        """Return the update by the rollout in the buffer; the policy acts as the last update left it."""
        if self.overlap:
            self.policy.load_state_dict(self.learner.state_dict())
        self.learner.set_training_mode(True)
        self._update_learning_rate(self.learner.optimizer)
        progress, buffer = self._current_progress_remaining, self.rollout_buffer
        clip = float(self.clip_range(progress))  # type: ignore[operator]
        clip_vf = None if self.clip_range_vf is None else float(self.clip_range_vf(progress))  # type: ignore[operator]
        explained = explained_variance(buffer.values.flatten(), buffer.returns.flatten())
        return Update(self._tabulate(), clip, clip_vf, float(explained))

    def _finish(self) -> None:
        """Wait for the update that runs, if one does, and log it."""
        if self._running is not None:
            found, update = self._running
            self._running = None
            self._record(found.result(), update)

    def _improve(self, update: Update) -> list[list[Terms]]:
        """Change the learner's weights; return what each epoch found."""
        found: list[list[Terms]] = []
        n_rows = len(update.table)
        if self.overlap:
            self._rebase(update.table)
        for _ in range(self.n_epochs):
            found.append([])
            order = np.random.permutation(n_rows)  # noqa: NPY002  # as SB3 draws it
            for first in range(0, n_rows, self.batch_size):
                rows = order[first : first + self.batch_size]
                batch = update.table[torch.from_numpy(rows).to(self.device)]
                self._mirror(batch[: round(self.mirror * rows.size)])
                self.learner.optimizer.zero_grad()
                terms = self.backward(batch, update.clip, update.clip_vf)
                found[-1].append(terms)
                if self.target_kl is not None and float(terms.kl) > 1.5 * self.target_kl:
                    self._n_updates += 1
                    return found
                self.clip_gradients()
                self.learner.optimizer.step()
            self._n_updates += 1
        return found

    def _rebase(self, table: torch.Tensor) -> None:
        """Replace the log-probabilities in the table by those of the learner."""
        policy: Any = self.learner
        n_actor, n_critic = (f.features_dim for f in (policy.pi_features_extractor, policy.vf_features_extractor))
        with torch.no_grad():
            mean = policy.action_net(policy.mlp_extractor.policy_net(table[:, :n_actor]))
            chosen: Any = torch.distributions.Normal(mean, policy.log_std.exp())
            table[:, -4] = chosen.log_prob(table[:, n_critic:-4]).sum(1)

    def _mirror(self, rows: torch.Tensor) -> None:
        """Mirror observations and actions in ``rows`` of the table."""
        if len(rows):
            assert self.reflection is not None, "mirror needs a reflection"
            source, sign = (torch.from_numpy(values).to(self.device) for values in self.reflection)
            rows[:, : len(source)] = rows[:, source] * sign

    def _tabulate(self) -> torch.Tensor:
        """Return the rollout as rows of observation, action, log-probability, advantage, return and value."""
        buffer: Any = self.rollout_buffer
        seen = buffer.observations
        parts = list(seen.values()) if isinstance(seen, dict) else [seen]
        columns = [*parts, buffer.actions, buffer.log_probs, buffer.advantages, buffer.returns, buffer.values]
        flat = [buffer.swap_and_flatten(values.reshape(*values.shape[:2], -1)) for values in columns]
        return torch.from_numpy(np.concatenate(flat, axis=1, dtype=np.float32)).to(self.device)

    def backward(self, batch: torch.Tensor, clip: float, clip_vf: float | None) -> Terms:
        """Give the policy's parameters the gradient of the loss over the rows ``batch``; it was zero before."""
        policy: Any = self.learner
        actor, critic, n_actions = policy.mlp_extractor.policy_net, policy.mlp_extractor.value_net, self._n_actions
        n_actor, n_critic = (f.features_dim for f in (policy.pi_features_extractor, policy.vf_features_extractor))
        count = len(batch)
        advantages = batch[:, -3]
        if self.normalize_advantage and count > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        with torch.no_grad():
            log_std = policy.log_std.detach()
            inverse = torch.exp(-log_std)
            constant = log_std.sum() + 0.5 * n_actions * math.log(2.0 * math.pi)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._casts):
            mean = policy.action_net(actor(batch[:, :n_actor]))
            value = policy.value_net(critic(batch[:, :n_critic]))
        mean, value = mean.float(), value.float()
        action, (old_log_prob, _, wanted, old_value) = batch[:, n_critic:-4], batch[:, -4:].unbind(1)
        with torch.no_grad():
            error = (action - mean) * inverse
            log_ratio = -0.5 * (error * error).sum(1) - constant - old_log_prob
            ratio = torch.exp(log_ratio)
            free = advantages * ratio
            bounded = advantages * ratio.clamp(1.0 - clip, 1.0 + clip)
            of_log_prob = (torch.where(free <= bounded, free, 0.0) / -count).unsqueeze(1)
            of_mean = of_log_prob * error * inverse
            of_log_std = (of_log_prob * (error * error - 1.0)).sum(0) - self.ent_coef
            off = value[:, 0] - wanted
            of_value = off
            if clip_vf is not None:
                change = value[:, 0] - old_value
                off = old_value + change.clamp(-clip_vf, clip_vf) - wanted
                of_value = torch.where(change.abs() <= clip_vf, off, 0.0)
            of_value = (of_value * (2.0 * self.vf_coef / count)).unsqueeze(1)
            clipped = ((ratio - 1.0).abs() > clip).float()
            means = (-torch.minimum(free, bounded), off * off, ratio - 1.0 - log_ratio, clipped)
        torch.autograd.backward([mean, value], [of_mean, of_value])
        policy.log_std.grad = of_log_std
        policy_loss, value_loss, kl, clip_fraction = (values.mean() for values in means)
        return Terms(policy_loss, value_loss, kl, clip_fraction, constant + 0.5 * n_actions)

    def clip_gradients(self) -> None:
        """Bound the gradient's norm, of all parameters together or of actor and critic apart."""
        norm: Any = self.max_grad_norm
        parts = self._parts()
        if not isinstance(norm, dict):
            torch.nn.utils.clip_grad_norm_([p for part in parts.values() for p in part], norm, foreach=True)
            return
        for name, parameters in parts.items():
            torch.nn.utils.clip_grad_norm_(parameters, norm[name], foreach=True)

    @property
    def _n_actions(self) -> int:
        return int(np.prod(self.action_space.shape or (1,)))

    def _parts(self) -> dict[str, list[torch.nn.Parameter]]:
        """Return the parameters of actor and critic."""
        policy: Any = self.learner
        critic = [*policy.mlp_extractor.value_net.parameters(), *policy.value_net.parameters()]
        actor = [*policy.mlp_extractor.policy_net.parameters(), *policy.action_net.parameters()]
        return {ACTOR: [policy.log_std, *actor], CRITIC: critic}

    def _record(self, epochs: list[list[Terms]], update: Update) -> None:
        """Log what SB3 logs; the divergence is that of the last epoch, the loss that of the last minibatch."""
        found = [terms for epoch in epochs for terms in epoch]
        means = Terms(*torch.stack([torch.stack(list(terms)) for terms in found]).mean(0))
        last, policy = found[-1], typing.cast(Any, self.learner)
        logged = {
            "entropy_loss": -float(means.entropy), "policy_gradient_loss": float(means.policy_loss),
            "value_loss": float(means.value_loss),
            "approx_kl": float(torch.stack([terms.kl for terms in epochs[-1]]).mean()),
            "clip_fraction": float(means.clip_fraction),
            "loss": float(last.policy_loss - self.ent_coef * last.entropy + self.vf_coef * last.value_loss),
            "explained_variance": update.explained_variance,
            "std": float(policy.log_std.detach().exp().mean()), "clip_range": update.clip,
        }  # fmt: skip
        if update.clip_vf is not None:
            logged["clip_range_vf"] = update.clip_vf
        for name, value in logged.items():
            self.logger.record(f"train/{name}", value)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")


@cache
def _worker(n_threads: int) -> ThreadPoolExecutor:
    """Return the thread of updates, whose torch uses ``n_threads``."""
    return ThreadPoolExecutor(1, "update", torch.set_num_threads, (n_threads,))
