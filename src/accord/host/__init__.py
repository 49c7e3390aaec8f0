"""The host: the program with one client per server, and what it is responsible for.

    from accord.host import Host

Names are loaded on first use.
"""

from accord.lazy_names import homes_of, lazy_names

_HOMES = homes_of(
    {
        "accord.cli.approver": "TerminalApprover",
        "accord.host.approvers": "PromptAnswer ApprovalQueue Approver ClientApprover GrantRequest",
        "accord.host.audit.event": "AuditEvent",
        "accord.host.audit.log": "AuditLog",
        "accord.host.conversation": "RunLimits RunResult",
        "accord.host.host": "Host",
        "accord.host.hosted_server": "HostedServerStatus",
        "accord.host.models.anthropic": "AnthropicModel",
        "accord.host.models.chat_completions": "ChatCompletionsModel",
        "accord.host.models.configured_model": "model_from_settings",
        "accord.host.models.limits": "ModelLimits",
        "accord.host.models.model": "LanguageModel ModelResult",
        "accord.host.models.provider": "ModelSettings",
        "accord.host.models.responses": "ResponsesModel",
        "accord.host.policy.call": "ProposedCall",
        "accord.host.policy.policy": "Policy RuleResult Verdict",
        "accord.host.prompts": "CallPrompt CommandPrompt DefinitionsPrompt SamplingPrompt",
        "accord.host.questions": "ElicitationContext",
    }
)
"""Every public name, and the module that defines it."""

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]: the stub lists them
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
