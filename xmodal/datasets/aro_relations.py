"""The relations that ARO's authors leave out of VG-Relation's accuracy.

They are those of their notebook: relations that hold both ways ("next to"), and many more, which
leaves those that the paper counts.
"""

_NAMES = """
    adjusting, around, attached to, beside, between, bigger than, biting, boarding, brushing,
    by, chewing, cleaning, climbing, close to, coming from, coming out of, contain, crossing,
    dragging, draped over, drinking, drinking from, driving, driving down, driving on, eating
    from, eating in, enclosing, exiting, facing, filled with, floating in, floating on, flying,
    flying above, flying in, flying over, flying through, full of, going down, going into, going
    through, grazing in, growing in, growing on, guiding, hanging from, hanging in, hanging off,
    hanging over, higher than, holding onto, hugging, in between, jumping off, jumping on,
    jumping over, kept in, larger than, leading, leaning over, leaving, licking, longer than,
    looking in, looking into, looking out, looking over, looking through, lying next to, lying
    on top of, making, mixed with, mounted on, moving, near, next to, of, on the back of, on the
    edge of, on the front of, on the other side of, on the side of, opening, painted on, parked
    at, parked beside, parked by, parked in, parked in front of, parked near, parked next to,
    perched on, petting, piled on, playing, playing in, playing on, playing with, pouring,
    reaching for, reading, reflected on, riding on, running in, running on, running through,
    seen through, sitting behind, sitting beside, sitting by, sitting in front of, sitting near,
    sitting next to, sitting under, skiing down, skiing on, sleeping in, sleeping on, smiling
    at, sniffing, splashing, sprinkled on, stacked on, standing against, standing around,
    standing behind, standing beside, standing in front of, standing near, standing next to,
    staring at, stuck in, surrounding, swimming in, swinging, talking to, topped with, touching,
    traveling down, traveling on, tying, typing on, underneath, wading in, waiting for, walking
    across, walking by, walking down, walking next to, walking through, with, working in,
    working on, worn on, wrapped around, wrapped in
"""
UNSCORED_RELATIONS = frozenset(' '.join(_NAMES.split()).split(', '))
