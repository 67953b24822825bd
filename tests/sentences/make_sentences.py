#!/usr/bin/env python3
"""Writes sentences.txt: 1,152 sentences, one a line, an empty line being an empty sentence.

What is written by hand covers languages, scripts, emoji, control and combining characters, numbers, code and lengths; the rest
is made of parts, so that lengths from 1 to several hundred tokens occur often. No line is copied from anywhere. With --check it
fails where the file would be another.
"""

import itertools
import sys
from pathlib import Path

BY_HAND = """
The harbour was quiet when the first ferry came in.
A cat sat on the windowsill and watched the rain.
Nobody expected the committee to agree so quickly.
How many stars can you see from the city on a clear night?
Stop!
Yes.
no
a
I
The price rose by 3.75 % to $1,204.50 on 2024-02-29.
She said: "I'll be there at 7:30 p.m., won't I?"
He'd've gone if they'd let him.
An e-mail to nobody@example.org bounced; see https://example.org/a?b=c&d=%20e#f for why.
def add(a, b): return a + b  # returns the sum
for (int i = 0; i < n; ++i) { y[i] = alpha * x[i] + y[i]; }
SELECT name, COUNT(*) FROM ferries WHERE harbour = 'north' GROUP BY name;
E = mc², H₂O, x₁ + x₂ ≤ ½, ∑ᵢ aᵢ = ∞, ∀x ∃y
naïve café résumé Ångström coöperate façade jalapeño
nai\u0308ve cafe\u0301 with combining marks
ALL CAPITAL LETTERS ARE LOUD
mIxEd CaSe wOrDs
supercalifragilisticexpialidocious antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis
Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft
...
?!?!?!
- - - - -
(((((nested)))))
[CLS] [SEP] [MASK] [PAD] [UNK] are words of the model itself.
[MASK]
##ing ##ed ## #hash
0
42
3.14159265358979323846264338327950288419716939937510
1234567890123456789012345678901234567890
-1e-45 NaN inf 0x7fc00000
Der Hafen war still, als die erste Fähre einlief.
Die Straße ist im Winter oft glatt; größere Schäden gab es nicht.
Wer hätte gedacht, dass der Ausschuss sich so schnell einigt?
Le port était calme quand le premier bac est arrivé.
L'été dernier, nous avons mangé des cerises à l'ombre d'un vieux chêne.
Où est la bibliothèque la plus proche, s'il vous plaît ?
El puerto estaba tranquilo cuando llegó el primer transbordador.
¿Cuántas estrellas se ven desde la ciudad? ¡Muchísimas!
O porto estava silencioso quando a primeira balsa chegou.
Não há pão de queijo nesta padaria hoje.
Il porto era silenzioso quando arrivò il primo traghetto.
Perché nessuno ha chiuso la finestra?
De haven was stil toen de eerste veerboot binnenkwam.
Hamnen var tyst när den första färjan kom in.
Havnen lå stille, da den første færge kom ind.
Satama oli hiljainen, kun ensimmäinen lautta saapui.
Höfnin var hljóð þegar fyrsta ferjan kom inn.
Port był cichy, kiedy przypłynął pierwszy prom.
Zażółć gęślą jaźń.
Přístav byl tichý, když připlul první trajekt.
A kikötő csendes volt, amikor az első komp befutott.
Portul era liniștit când a sosit primul feribot.
İlk feribot geldiğinde liman sessizdi.
Sáng nay bến cảng yên tĩnh khi chuyến phà đầu tiên cập bến.
Pelabuhan sepi ketika feri pertama tiba.
Гавань была тиха, когда пришёл первый паром.
Сколько звёзд видно из города в ясную ночь?
Гавань була тиха, коли прийшов перший пором.
Пристанището беше тихо, когато дойде първият ферибот.
Το λιμάνι ήταν ήσυχο όταν ήρθε το πρώτο πλοίο.
הנמל היה שקט כשהמעבורת הראשונה הגיעה.
كان الميناء هادئا عندما وصلت العبّارة الأولى.
بندر آرام بود وقتی اولین کشتی رسید.
जब पहली नौका आई तब बंदरगाह शांत था।
প্রথম ফেরি এলে বন্দর শান্ত ছিল।
முதல் படகு வந்தபோது துறைமுகம் அமைதியாக இருந்தது.
ท่าเรือเงียบสงบเมื่อเรือข้ามฟากลำแรกมาถึง
第一班渡轮进港时，港口很安静。
第一班渡輪進港時，港口很安靜。
最初のフェリーが入ってきたとき、港は静かだった。
ひらがなとカタカナと漢字が混ざった文。
첫 번째 여객선이 들어왔을 때 항구는 조용했다.
პირველი ბორანი რომ შემოვიდა, ნავსადგური წყნარი იყო.
Երբ առաջին լաստանավը եկավ, նավահանգիստը լուռ էր։
የመጀመሪያው ጀልባ ሲደርስ ወደቡ ጸጥ ያለ ነበር።
Bandari ilikuwa tulivu wakati kivuko cha kwanza kilipofika.
Chapter 第三章: der Anfang vom конец, the end of la fin.
😀
😀😃😄😁😆
👩‍👩‍👧‍👦 and 👍🏽 and 🇫🇷🇯🇵
I ❤️ the sea 🌊, the sun ☀️ and ferries ⛴️!
party 🎉🎉🎉 tonight at 20:00 🕗
⛴
\u200b
\u200bzero\u200bwidth\u200b spaces
soft\u00adhyphens in a long\u00adish word
\ttabs\tbetween\twords\t
   spaces   around   words   
\u00a0no-break\u00a0spaces\u00a0
\ufeffa byte order mark first
right-to-left \u202eoverride\u202c in the middle
a replacement \ufffd character
𝔣𝔯𝔞𝔨𝔱𝔲𝔯 and 𝟙𝟚𝟛 and ｆｕｌｌｗｉｄｔｈ ＡＢＣ１２３
ﬁne ﬂour oﬃce ǅ ß ẞ ſ
\U0001f9ff\U00020000\U0002f800 beyond the basic plane
a\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308 one letter, nine marks
“curly quotes” ‘single’ «guillemets» „low“ — dashes – and … dots
1. first; 2) second; iii. third; (d) fourth
tel. +49 (0)30 1234-5678, ISBN 978-3-16-148410-0, 52°31′N 13°24′E
C++ C# F# .NET node.js v22.0.1-rc.2+build.5
/usr/local/bin/adead --device cuda:0 --batch 32 < in.txt > out.npy
<html><body><p class="a">markup &amp; entities &lt;here&gt;</p></body></html>
{"key": ["value", 1, null, true], "nested": {"a": "b"}}
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
abababababababababababababababababababababababababababababababababababababababababababababababab
same same same same same same same same same same same same same same same same
""".strip("\n").split("\n")

SUBJECTS = ["The old captain", "A young engineer", "My neighbour", "The committee", "Every student", "The orchestra",
            "An unknown caller", "The night train"]  # fmt: skip
VERBS = ["repaired", "described", "forgot", "photographed", "measured", "painted", "lost", "borrowed"]
OBJECTS = ["the red lighthouse", "a letter from Lisbon", "twelve wooden chairs", "the last equation", "an hour of silence",
           "the map of the valley", "a broken violin", "every second word"]  # fmt: skip
ENDS = ["before the storm came", "because nobody had asked", "while the kettle was boiling", "although it was forbidden",
        "in front of the station", "for the third time this year", "without saying why", "and nobody noticed"]  # fmt: skip
QUESTIONS = ["How do I {} in {}?", "What is the best way to {} with {}?", "Why would anyone {} using {}?"]
TASKS = ["sort a list of names", "boil an egg", "learn to swim", "read a large file", "plant tomatoes", "cancel a contract",
         "restore an old photograph", "find a cheap flight"]  # fmt: skip
MEANS = ["Python", "ten minutes", "a rented boat", "Spanish", "no money at all"]
FRAGMENTS = ["Der Zug nach {} fährt um {} Uhr ab.", "Le train pour {} part à {} heures.", "El tren a {} sale a las {}.",
             "Поезд в {} отправляется в {} часов.", "開往{}的列車{}點出發。", "{} 行きの列車は {} 時に出ます。"]  # fmt: skip
PLACES = ["Hamburg", "Kraków", "São Paulo", "Osaka", "Reykjavík", "Αθήνα", "Київ"]


def made():
    for subject, verb, (i, thing) in itertools.product(SUBJECTS, VERBS, enumerate(OBJECTS)):
        if (len(subject) + len(verb) + i) % 2:
            yield f"{subject} {verb} {thing} {ENDS[(len(verb) * 3 + i) % len(ENDS)]}."
    for question, task, means in itertools.product(QUESTIONS, TASKS, MEANS):
        yield question.format(task, means)
    for (i, fragment), place in itertools.product(enumerate(FRAGMENTS), PLACES):
        yield fragment.format(place, 6 + (i * 5 + len(place)) % 17)


def long():
    """Of every number of words up to some, then of more than the model takes."""
    words = " ".join(f"{a} {b} {c} {d}" for a, b, c, d in zip(SUBJECTS, VERBS, OBJECTS, ENDS)).lower().split()
    for n in [*range(2, 200), 220, 240, 250, 251, 252, 253, 254, 255, 256, 257, 258, 260, 300, 400, 500, 512, 600, 601, 1000]:
        yield " ".join(words[(i * 7 + n) % len(words)] for i in range(n))
    yield " ".join(f"слово{i} 語{i}" for i in range(100))
    yield "漢字" * 200
    yield "🌊" * 300
    yield "word " * 600


def main():
    lines = ["", *BY_HAND, "", *made(), *long()]
    # What is left: pairs of earlier ones, and some again as they are.
    made_so_far = len(lines)
    for i in range(1152 - made_so_far):
        a, b = lines[(i * 37 + 11) % made_so_far], lines[(i * 101 + 53) % made_so_far]
        lines.append(a if i % 16 == 0 else f"{a} {b}")
    assert len(lines) == 1152 and not any("\n" in line or "\r" in line for line in lines)
    path, contents = Path(__file__).with_name("sentences.txt"), "".join(f"{line}\n" for line in lines).encode()
    if "--check" not in sys.argv[1:]:
        path.write_bytes(contents)
    elif path.read_bytes() != contents:
        sys.exit(f"{path} is not what make_sentences.py writes")
    print(f"{len(lines)} sentences")


main()
