from accord.cli.approver import TerminalApprover as TerminalApprover
from accord.host.approvers import (
    ApprovalQueue as ApprovalQueue,
    Approver as Approver,
    ClientApprover as ClientApprover,
    GrantRequest as GrantRequest,
    PromptAnswer as PromptAnswer,
)
from accord.host.audit.event import AuditEvent as AuditEvent
from accord.host.audit.log import AuditLog as AuditLog
from accord.host.conversation import RunLimits as RunLimits, RunResult as RunResult
from accord.host.host import Host as Host
from accord.host.hosted_server import HostedServerStatus as HostedServerStatus
from accord.host.models.anthropic import AnthropicModel as AnthropicModel
from accord.host.models.chat_completions import ChatCompletionsModel as ChatCompletionsModel
from accord.host.models.configured_model import model_from_settings as model_from_settings
from accord.host.models.limits import ModelLimits as ModelLimits
from accord.host.models.model import LanguageModel as LanguageModel, ModelResult as ModelResult
from accord.host.models.provider import ModelSettings as ModelSettings
from accord.host.models.responses import ResponsesModel as ResponsesModel
from accord.host.policy.call import ProposedCall as ProposedCall
from accord.host.policy.policy import Policy as Policy, RuleResult as RuleResult, Verdict as Verdict
from accord.host.prompts import (
    CallPrompt as CallPrompt,
    CommandPrompt as CommandPrompt,
    DefinitionsPrompt as DefinitionsPrompt,
    SamplingPrompt as SamplingPrompt,
)
from accord.host.questions import ElicitationContext as ElicitationContext

__all__ = [
    "AnthropicModel",
    "ApprovalQueue",
    "Approver",
    "AuditEvent",
    "AuditLog",
    "CallPrompt",
    "ChatCompletionsModel",
    "ClientApprover",
    "CommandPrompt",
    "DefinitionsPrompt",
    "ElicitationContext",
    "GrantRequest",
    "Host",
    "HostedServerStatus",
    "LanguageModel",
    "ModelLimits",
    "ModelResult",
    "ModelSettings",
    "Policy",
    "PromptAnswer",
    "ProposedCall",
    "ResponsesModel",
    "RuleResult",
    "RunLimits",
    "RunResult",
    "SamplingPrompt",
    "TerminalApprover",
    "Verdict",
    "model_from_settings",
]
