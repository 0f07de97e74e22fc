"""Stand-ins for testing your own agents: no model, no microphone, no room and no network.

    from caal_node.testing import (
        AgentConversation, ScriptedCall, ScriptedModel, options_given, plain_settings
    )

    async def test_the_timer_is_set() -> None:
        model = ScriptedModel([ScriptedCall("set_timer", {"minutes": 5})], "It runs.")
        with options_given(settings=plain_settings(), tiers={}):
            agent = MyAgent()
        async with AgentConversation(agent, model) as conversation:
            turn = await conversation.say("five minutes for the eggs")
        assert turn.calls[0].arguments == {"minutes": 5}
        assert turn.spoken == "It runs."

The agent, its prompts, the understanding of replies, the tools and LiveKit's executor are the real
ones; only what is outside of the process is scripted.
"""

from caal_node.agent_options import options_given
from caal_node.conversation import CallRecord, TurnRecord
from caal_node.testing.conversation import AgentConversation, plain_settings
from caal_node.testing.scripted import (
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    ScriptedSTT,
    ScriptedToolSource,
    ScriptedTTS,
)

__all__ = [
    "AgentConversation",
    "CallRecord",
    "ScriptedCall",
    "ScriptedModel",
    "ScriptedReply",
    "ScriptedSTT",
    "ScriptedTTS",
    "ScriptedToolSource",
    "TurnRecord",
    "options_given",
    "plain_settings",
]
