from medlink.corpora.records import LabeledDocument, LabeledMention
from medlink.corpora.successors import with_successors


def test_old_ids_are_replaced_wherever_they_stand_and_the_rest_is_kept():
    mention = LabeledMention("1", 0, 4, "gout", "Disease", (("HP:1", "HP:2"), (), ("HP:3",)))
    document = LabeledDocument("1", "gout", (mention, LabeledMention("1", 0, 4, "gout", "Disease", ())))

    (renewed,) = with_successors([document], {"HP:2": "HP:20", "HP:3": "HP:30"})

    assert [m.gold for m in renewed.mentions] == [(("HP:1", "HP:20"), (), ("HP:30",)), ()]
    assert (renewed.text, renewed.mentions[0].text, renewed.mentions[0].end) == ("gout", "gout", 4)
    assert mention.gold == (("HP:1", "HP:2"), (), ("HP:3",))
