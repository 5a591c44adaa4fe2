"""ACE-RPE: relative position between words and patches, through anchors."""

import math

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.necks.position import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import CrossTerms, LowRank, Relation, Tokens


@MODELS.register_module(name=['AnchorRelativePosition', 'ace_rpe'])
class AnchorRelativePosition(NoPosition):
    """Anchor-based relative position embedding (ACE-RPE, Eqs. 3-12).

    A similar word and patch are an anchor. The distance of any word and any patch is the length of
    the shortest path through an anchor nearby. P (B, 1+M, 1+N, G) is computed once a forward
    pass; E_ace = P W (Eq. 8) is never built: layers get P, its means and W.

    W starts at zero, so that a new position leaves a pre-trained fusion encoder as it is.

    An image may be regions (B, R, D) with boxes and without [CLS]: the centres of the boxes are
    their positions, and the nearest ``patch_window``² boxes are neighbours. See
    :func:`xmodal.functional.relative_box_distance`.

    Args:
        depth: number of fusion layers.
        embed_dims: D, the width of the tokens.
        num_heads: heads of a fusion layer.
        groups: G, groups of the similarity (Eq. 3).
        delta: δ, the threshold of an anchor (Eq. 4).
        tau: τ, how steeply similarities below δ vanish (Eq. 4).
        patch_window: side of the square of patches searched, 3 for the paper's B_p = 9.
        token_window: B_t, number of words searched.
        mode: 'contextual' (Eqs. 10-12) or 'bias' (Eq. 9).
        query: embed the queries (Table 9); contextual mode.
        key: embed the keys; contextual mode.
        value: embed the values; contextual mode.
        shared: one set of W for all layers (Table 6) instead of one a layer.
        null: E_ace of a pair that no anchor reaches: 'zero', 'far' (the largest reachable path) or
            'learned' (a learned vector).
    """

    has_similarities = True

    def __init__(
        self,
        depth: int,
        embed_dims: int,
        num_heads: int,
        groups: int = 8,
        delta: float = 0.05,
        tau: float = 1e4,
        patch_window: int = 3,
        token_window: int = 5,
        mode: str = 'contextual',
        query: bool = True,
        key: bool = True,
        value: bool = True,
        shared: bool = False,
        null: str = 'zero',
    ) -> None:
        super().__init__(depth, embed_dims, num_heads)
        _check_choice('mode', mode, ('contextual', 'bias'))
        _check_choice('null', null, ('zero', 'far', 'learned'))
        F.check_groups('position.groups', groups, embed_dims)
        for name, window in (('patch_window', patch_window), ('token_window', token_window)):
            if window < 1 or window % 2 == 0:
                raise ValueError(f'position.{name}={window}, expected an odd number, as 3')
        if delta <= 0:
            raise ValueError(f'position.delta={delta}, expected a cosine above 0, as 0.05')
        self.groups, self.delta, self.tau = groups, delta, tau
        self.patch_window, self.token_window = patch_window, token_window
        self.shared, self.null = shared, null
        roles = {'query': query, 'key': key, 'value': value}
        self.roles = ['bias'] if mode == 'bias' else [name for name, used in roles.items() if used]
        rows = 2 * groups if null == 'learned' else groups
        layers = 1 if shared else depth
        self.weight = nn.ParameterDict(
            {role: nn.Parameter(torch.zeros(layers, rows, embed_dims)) for role in self.roles}
        )
        if mode == 'bias':
            self.undecayed = ('bias_projection',)  # a vector a layer, stacked
            self.bias_projection = nn.Parameter(torch.empty(layers, embed_dims))
            nn.init.normal_(self.bias_projection, std=0.02)

    @property
    def farthest(self) -> float:
        """The longest path of an anchor at the threshold on a grid: 1/δ plus both windows' reach.

        Among regions, whose steps are longer, and below the threshold, paths may be longer.
        """
        patches = math.sqrt(2) * (self.patch_window // 2)
        return 1 / self.delta + patches + self.token_window // 2

    def similarity(self, image: Tokens, text: Tokens) -> Tensor:
        """S_G (Eq. 3), (B, 1+M, 1+N, G); another way to find anchors overrides this."""
        return F.multi_group_similarity(image.embeddings, text.embeddings, self.groups)

    def distance(self, image: Tokens, text: Tokens) -> tuple[Tensor, Tensor | None]:
        """P of Eq. 7 and S_G, both (B, 1+M, 1+N, G).

        Raises:
            ValueError: for regions without boxes, which are nowhere.
        """
        image.require_places()
        similarity = self.similarity(image, text)
        anchored = F.anchor_distance(similarity, self.delta, self.tau)
        if image.boxes is None:
            if image.attention_mask is not None:  # padding of the grid is no anchor
                anchored = anchored.masked_fill(~image.attention_mask[..., None, None], math.inf)
            distance = F.relative_distance(
                anchored, image.grid_size, text.attention_mask, self.patch_window, self.token_window
            )
        else:
            distance = F.relative_box_distance(
                anchored,
                image.boxes,
                image.full_mask(),
                text.full_mask(),
                self.patch_window**2,
                self.token_window,
            )
        return distance, similarity

    def relate(self, image: Tokens, text: Tokens) -> Relation:
        """The anchors, and the shortest path of every pair."""
        distance, similarity = self.distance(image, text)
        features = F.fill_unreachable(distance, self.null, self.farthest)
        masks = image.attention_mask, text.attention_mask
        image_mean, text_mean = F.contextual_means(features, *masks)
        return Relation(similarity, distance, features, image_mean, text_mean)

    def cross_terms(self, layer: int, relation: Relation, queries: str) -> CrossTerms:
        """Eqs. 9-12 as factors, from the side of the queries."""
        layer = 0 if self.shared else layer
        features = relation.features
        query_mean, context_mean = relation.image_mean, relation.text_mean
        if queries == 'text':
            features = features.transpose(1, 2)
            query_mean, context_mean = context_mean, query_mean
        weight = {role: weight[layer] for role, weight in self.weight.items()}
        if 'bias' in weight:
            bias = F.bias_term(features, weight['bias'], self.bias_projection[layer])
            return CrossTerms(bias=bias[:, None])
        terms = {}
        if 'query' in weight:
            terms['query'] = LowRank(query_mean, weight['query'])
        if 'key' in weight:
            terms['key'] = LowRank(context_mean, weight['key'])
        if 'value' in weight:
            terms['value'] = LowRank(context_mean, weight['value'])
            terms['pairs'] = LowRank(features, weight['value'])
        return CrossTerms(**terms)

    @torch.no_grad()
    def statistics(
        self, relation: Relation, text_mask: Tensor, image_mask: Tensor
    ) -> dict[str, Tensor]:
        """Shares of each pair of image and text, (B,); they show a collapse of the anchors.

        ``anchor_share``: pairs of a patch and a word that are anchors; ``masked_share``: pairs that
        no anchor reaches; both without [CLS] and padding, over all groups.
        """
        real = image_mask[:, :, None, None] & text_mask[:, None, 1:, None]
        count = (real.sum((1, 2, 3)) * self.groups).clamp(min=1)
        masked = relation.distance[:, :, 1:].isinf() & real
        shares = {'masked_share': masked.sum((1, 2, 3)) / count}
        if relation.similarity is not None:
            anchors = F.anchor_mask(relation.similarity[:, :, 1:], self.delta) & real
            shares['anchor_share'] = anchors.sum((1, 2, 3)) / count
        return shares


@MODELS.register_module(name=['UniformPosition', 'uniform'])
class UniformPosition(AnchorRelativePosition):
    """ACE-RPE without anchors: every word is at the same distance, 1, from every patch.

    The control of Tables 1 and 2: the same parameters without any location.
    """

    has_similarities = False

    def distance(self, image: Tokens, text: Tokens) -> tuple[Tensor, None]:
        """P = 1 for every real pair, +inf for padding."""
        real = image.pairs_with(text)
        ones = torch.ones(*real.shape, self.groups, device=real.device)
        return ones.masked_fill(~real[..., None], math.inf), None


def _check_choice(key: str, value: str, expected: tuple[str, ...]) -> None:
    if value not in expected:
        raise ValueError(f"position.{key}='{value}', expected one of {', '.join(expected)}")
