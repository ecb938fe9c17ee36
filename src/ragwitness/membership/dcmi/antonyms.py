"""Adjectives and adverbs with their opposites: common ones, and those of medical prose."""

from __future__ import annotations

__all__ = ["ANTONYMS"]

_PAIRS = """
old/young less/more careful/careless able/unable absent/present accurate/inaccurate active/inactive
acute/chronic adequate/inadequate advanced/basic alive/dead always/never ancient/modern angry/calm
anxious/relaxed asleep/awake attractive/ugly available/unavailable aware/unaware beautiful/hideous
benign/malignant best/worst better/worse big/small bilateral/unilateral bitter/sweet black/white
bold/timid brave/cowardly brief/lengthy bright/dim broad/narrow busy/idle careful/reckless
certain/uncertain certainly/hardly cheap/expensive clean/dirty clear/unclear clearly/vaguely
clever/stupid closed/open cold/hot comfortable/uncomfortable common/rare commonly/rarely
complete/incomplete completely/partly complex/simple conscious/unconscious constant/variable
cool/warm correct/incorrect correctly/wrongly curved/straight dangerous/safe dark/bright
dead/living deep/shallow definite/doubtful dense/sparse different/identical difficult/easy
direct/indirect directly/indirectly domestic/foreign dry/wet dull/sharp early/late easily/hardly
easy/hard effective/ineffective elderly/young empty/full enough/insufficient essential/unnecessary
exact/approximate exactly/roughly excellent/terrible external/internal fair/unfair
familiar/unfamiliar famous/unknown far/near fast/slow favorable/unfavorable female/male fewer/more
final/initial finally/initially flexible/rigid formal/informal former/latter fortunate/unfortunate
fortunately/sadly frequent/infrequent frequently/seldom fresh/stale friendly/hostile
generally/occasionally general/specific gentle/harsh gently/roughly genuine/fake glad/sad good/bad
gradual/sudden gradually/suddenly great/tiny greater/lesser guilty/innocent happily/sadly
happy/unhappy hard/soft healthy/sick heavily/lightly heavy/slight helpful/useless hidden/visible
high/low higher/lower highest/lowest highly/barely honest/dishonest horizontal/vertical huge/tiny
humble/proud hungry/thirsty immediate/delayed immediately/eventually important/unimportant
inner/outer inside/outside intense/mild junior/senior large/small larger/smaller largest/smallest
lazy/diligent legal/illegal likely/unlikely local/global long/short longer/shorter loose/tight
loud/quiet loudly/quietly lucky/unlucky main/minor major/minor many/few mature/immature
maximum/minimum mentally/physically mild/severe minimal/maximal most/least mostly/hardly
natural/artificial necessary/unnecessary negative/positive new/old nearby/faraway nice/nasty
noisy/silent normal/abnormal normally/abnormally obvious/subtle official/unofficial often/rarely
older/younger oral/intravenous ordinary/extraordinary painful/painless pale/dark partial/total
particular/general peaceful/violent perfect/flawed permanent/temporary pleasant/unpleasant
plentiful/scarce polite/rude poor/rich popular/unpopular possible/impossible possibly/definitely
powerful/weak precise/vague primary/secondary private/public probably/improbably proper/improper
public/secret pure/impure quick/slow quickly/slowly rapid/slow rapidly/slowly raw/cooked
real/imaginary recent/old recently/formerly regular/irregular regularly/irregularly
relevant/irrelevant reliable/unreliable responsible/irresponsible rough/smooth same/different
satisfied/dissatisfied scared/fearless secure/insecure serious/trivial severely/mildly short/tall
significant/insignificant significantly/slightly similar/dissimilar simply/elaborately
slightly/greatly smart/foolish sober/drunk solid/liquid sometimes/always soon/later sour/sweet
special/ordinary stable/unstable steady/unsteady strange/familiar strict/lenient strong/weak
stronger/weaker strongly/weakly successful/unsuccessful sufficient/insufficient suitable/unsuitable
sure/unsure swollen/shrunken temporary/lasting thick/thin tired/rested tough/tender true/false
typical/atypical unusual/usual upper/lower urgent/trivial useful/useless usually/rarely
valid/invalid valuable/worthless wealthy/poor wide/narrow widely/narrowly wild/tame wise/foolish
wonderful/awful worried/unworried wrong/right yearly/daily
"""


def _table() -> dict[str, str]:
    """Each word with the opposite it is first listed with."""
    found: dict[str, str] = {}
    for pair in _PAIRS.split():
        one, other = pair.split("/")
        found.setdefault(one, other)
        found.setdefault(other, one)
    return found


ANTONYMS = _table()
"""Lower-case words and their opposites."""
